"""A run's way through the files of export, which the list of stages of a bundle keeps short.

A file is entered where a function of it gets the run, or what holds the run; it is entered again
where a call comes back to it, or goes to it once more.
"""

import functools
import sys
from pathlib import Path

import pytest

import seqkeras.export
from seqkeras.export.bundle import export
from seqkeras.export.run import Run
from tests.zoo import classify

EXPORT = Path(seqkeras.export.__file__).parent
MOST_RETURNS = 15


def holds_a_run(value):
    return isinstance(value, Run) or isinstance(getattr(value, "run", None), Run)


@functools.cache
def file_of(code):
    """The file of export that holds a function, or None."""
    path = Path(code.co_filename)
    return path if EXPORT in path.parents and not code.co_name.startswith("<") else None


class Walk:
    """Profiles a process: the files of export that a run enters, in order."""

    def __init__(self):
        self.files, self._open = [], []

    def __call__(self, frame, event, _):
        if event == "call":
            if file_of(frame.f_code) and any(map(holds_a_run, frame.f_locals.values())):
                self._open.append(frame)
                self._enter(frame)
        elif event == "return" and self._open and self._open[-1] is frame:
            self._open.pop()
            if self._open:
                self._enter(self._open[-1])

    def _enter(self, frame):
        path = file_of(frame.f_code)
        if self.files[-1:] != [path]:
            self.files.append(path)


@pytest.mark.long  # a profile of each call takes its time
def test_a_run_comes_back_to_few_files(tmp_path):
    classify(tmp_path / "run")
    walk = Walk()
    sys.setprofile(walk)
    try:
        export(tmp_path / "run", tmp_path / "bundle")
    finally:
        sys.setprofile(None)
    names = [path.relative_to(EXPORT).as_posix() for path in walk.files]
    assert {"bundle.py", "checks/fit.py", "verifying/single_pass.py"} <= set(names)
    assert len(names) - len(set(names)) <= MOST_RETURNS, names

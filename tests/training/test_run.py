"""The life of a run folder, killed at every moment."""

import dataclasses
import json
import shutil

import pytest

from seqkeras.runs import RunError
from seqkeras.training.run import FILES, is_finished, open_run
from tests.conftest import others_long, start_python
from tests.killing import killed_at_every_moment
from tests.training.commands import refusal

OPEN = """
import dataclasses
from pathlib import Path

from seqkeras.training.run import open_run

Options = dataclasses.make_dataclass("Options", [("seed", int)])
sys.addaudithook(die)
open_run(Path({folder!r}), "toy", Options(5), True)
"""
HOLD = """
import sys

from seqkeras.locking import locked

with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@dataclasses.dataclass(frozen=True)
class Options:
    seed: int


def finished(folder):
    """A run with seed 0."""
    open_run(folder, "toy", Options(0), False)
    assert not is_finished(folder, "toy", Options(0), False)
    for name in ("tokenizer", "tensorboard"):
        (folder / name).mkdir()
    for name in ("tokenizer/text.json", "tensorboard/events.out.tfevents.1.host.2", *FILES):
        (folder / name).write_text("of seed 0")


@pytest.mark.parametrize(
    "before", others_long([lambda folder: None, finished]), ids=["new", "finished"]
)
def test_killed_at_any_moment_the_same_command_opens_the_run_again(before, tmp_path):
    folder = tmp_path / "run"

    def prepare():
        shutil.rmtree(folder, ignore_errors=True)
        before(folder)

    for _ in killed_at_every_moment(OPEN.format(folder=str(folder)), tmp_path, prepare):
        options = folder / "options.json"
        if options.exists() and json.loads(options.read_text())["seed"] == 5:
            left = [path.name for path in folder.iterdir() if path.name in FILES]
            assert left == []  # nothing of seed 0 lies beside the options of seed 5
        elif options.exists() and is_finished(folder, "toy", Options(0), False):
            assert all((folder / name).read_text() == "of seed 0" for name in FILES)
        open_run(folder, "toy", Options(5), True)
        assert [path.name for path in folder.iterdir()] == ["options.json"]
        open_run(folder, "toy", Options(5), False)
        assert not is_finished(folder, "toy", Options(5), False)


def test_a_finished_run_is_not_opened_with_other_options(tmp_path):
    finished(tmp_path / "run")
    assert is_finished(tmp_path / "run", "toy", Options(0), False)
    with pytest.raises(RunError, match="seed is 0 there and 5 here; choose another --out, or rep"):
        open_run(tmp_path / "run", "toy", Options(5), False)


def test_a_run_of_another_task_is_refused_by_its_task_alone(tmp_path):
    finished(tmp_path / "run")
    message = "run: holds a run of toy; choose another --out, or replace it with --overwrite.$"
    with pytest.raises(RunError, match=message):
        open_run(tmp_path / "run", "other", Options(5), False)


def test_a_folder_that_can_not_be_made_is_refused_by_its_name(tmp_path):
    (tmp_path / "file").write_text("mine")
    message = r"file/run: can not be written \(Not a directory\); choose another --out.$"
    with pytest.raises(RunError, match=message):
        open_run(tmp_path / "file" / "run", "toy", Options(0), False)


def test_a_run_that_another_process_trains_is_refused_with_its_process(tmp_path):
    folder = tmp_path / "run"
    finished(folder)
    before = (folder / "options.json").read_bytes()
    with start_python("-c", HOLD, folder) as holder:
        assert holder.stdout.readline() == "held\n"
        line = refusal("dates", "--overwrite", out=folder)
        holder.stdin.close()
    assert line == (
        f"seqkeras train: {folder}: process {holder.pid} writes it; wait until that process has "
        "ended, or choose another folder."
    )
    assert (folder / "options.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]

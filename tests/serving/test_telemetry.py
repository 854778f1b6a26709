"""onnxruntime's telemetry: off in every process of ours, unless the user turns it on.

It writes an event database into the user's cache folder as onnxruntime is imported.
"""

import os
import subprocess
import sys

import pytest

from tests.conftest import CHECKOUT, others_long

LOADS = """
import sys
import {module}
import onnxruntime
from seqkeras import serving
serving.load(sys.argv[1])("up|bad")
"""


def environment(home, **variables):
    """As a user has it: telemetry is off by itself where CI is set, as in many a test run."""
    home.mkdir()
    return {"PATH": os.environ["PATH"], "HOME": str(home), **variables}


def files(folder):
    return [path.name for path in folder.rglob("*") if path.is_file()]


def begun(home, *arguments, **variables):
    """A process with this home and nothing else of the environment."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command, given = [sys.executable, *map(str, arguments)], environment(home, **variables)
    return subprocess.Popen(command, cwd=CHECKOUT, env=given, text=True, **pipes)


PREDICT = ["-m", "serving", "predict"]
MODULES = ["seqkeras.serving", "seqkeras.export", "seqkeras.training", "benchmarks"]
PROGRAMS = [PREDICT, *(["-c", LOADS.format(module=module)] for module in MODULES)]


@pytest.mark.parametrize("program", others_long(PROGRAMS), ids=["predict", *MODULES])
def test_no_file_is_made(program, shared_bundle, tmp_path):
    given = ["up|bad"] if program is PREDICT else []
    process = begun(tmp_path / "home", *program, shared_bundle, *given)
    _, error = process.communicate()
    assert (process.returncode, error, files(tmp_path / "home")) == (0, "", [])


def test_whoever_sets_the_variable_is_obeyed(shared_bundle, tmp_path):
    code = LOADS.format(module="seqkeras.serving")
    process = begun(tmp_path / "home", "-c", code, shared_bundle, ORT_DISABLE_TELEMETRY="0")
    process.communicate()
    assert "onnxruntime.db" in files(tmp_path / "home")

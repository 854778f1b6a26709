"""`seqkeras train` answers for help, and for options that are wrong, before it loads Keras."""

import json
import subprocess
import sys

import pytest

from seqkeras.training.__main__ import main
from seqkeras.training.tasks import TASKS
from tests.conftest import CHECKOUT

LOADED = """
import json
import sys

from seqkeras.training.__main__ import main

status = main(json.loads(sys.argv[1]))
heavy = {"keras", "matplotlib", "tensorflow"} & set(sys.modules)
sys.exit(f"loaded: {heavy}" if heavy else status)
"""


def command(*arguments):
    program = [sys.executable, "-c", LOADED, json.dumps(arguments)]
    return subprocess.run(program, cwd=CHECKOUT, capture_output=True, text=True)


@pytest.mark.parametrize("task", TASKS)
def test_the_help_of_a_task_needs_no_keras(task):
    shown = command(task, "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"Usage: seqkeras train {task}" in shown.stdout and "--passes" in shown.stdout


def test_the_list_of_tasks_needs_no_keras():
    shown = command()
    assert (shown.returncode, shown.stderr) == (2, "")
    assert all(f"\n  {task} " in shown.stdout for task in TASKS)


def test_an_option_is_not_the_value_of_the_one_before(capsys):
    shell = ["classification", "texts.csv", "--pretrained", "--config", "a.toml", "--out", "run"]
    assert main(shell) == 2
    assert capsys.readouterr().err == (
        "training: --pretrained has no value: --config stands in its place. If it is a variable of "
        "the shell, that is empty. See seqkeras train classification --help.\n"
    )


@pytest.mark.parametrize("wrong", [["--unitz", "3"], ["--examples", "9"]])
def test_a_wrong_option_needs_no_keras(wrong, tmp_path):
    refused = command("dates", "--out", str(tmp_path / "run"), *wrong)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert wrong[0] in refused.stderr

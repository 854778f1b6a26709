"""`seqkeras train` answers for help, and for options that are wrong, before it loads Keras."""

import json

from seqkeras.training.__main__ import main
from seqkeras.training.tasks import TASKS
from tests.conftest import run_python

LOADED = """
import json
import sys

from seqkeras.training.__main__ import main

statuses = [main(arguments) for arguments in json.loads(sys.argv[1])]
heavy = {"keras", "matplotlib", "tensorflow"} & set(sys.modules)
sys.exit(f"loaded: {heavy}" if heavy else max(statuses))
"""


def commands(*commands):
    """Run commands, one after the other in a process that may not load Keras."""
    return run_python("-c", LOADED, json.dumps(commands))


def test_the_help_of_a_task_needs_no_keras():
    shown = commands(*([task, "--help"] for task in TASKS))
    assert (shown.returncode, shown.stderr) == (0, "")
    for task, text in zip(TASKS, shown.stdout.split("Usage: seqkeras train ")[1:], strict=True):
        assert text.startswith(f"{task} ") and "--passes" in text


def test_the_list_of_tasks_needs_no_keras():
    shown = commands([])
    assert (shown.returncode, shown.stderr) == (2, "")
    assert all(f"\n  {task} " in shown.stdout for task in TASKS)


def test_an_option_is_not_the_value_of_the_one_before(capsys):
    shell = ["classification", "texts.csv", "--pretrained", "--config", "a.toml", "--out", "run"]
    assert main(shell) == 2
    assert capsys.readouterr().err == (
        "seqkeras train: --pretrained has no value: --config stands in its place. If it is a "
        "variable of the shell, that is empty. See seqkeras train classification --help.\n"
    )


def test_a_wrong_option_needs_no_keras(tmp_path):
    wrong = ["--unitz", "3"], ["--examples", "9"]
    refused = commands(*(["dates", "--out", str(tmp_path / "run"), *option] for option in wrong))
    assert refused.returncode == 2
    for (name, _), line in zip(wrong, refused.stderr.splitlines(), strict=True):
        assert name in line


def test_what_a_name_a_folder_or_a_first_line_tells_is_refused_without_keras(tmp_path):
    table, other, stranger = tmp_path / "a.csv", tmp_path / "a.xlsx", tmp_path / "stranger"
    for path in (table, other):
        path.write_text("text,label\nfine,good\n")
    stranger.mkdir()
    (stranger / "notes").touch()
    out = ["--out", tmp_path / "run"]
    wrong = {
        "there is no column 'body'": ["classification", table, "--text-column", "body", *out],
        "there is no column 'number'": ["regression", table, *out],
        "there is no column 'load'": ["forecasting", table, "--targets", "load", *out],
        "a.xlsx: the name must end in .csv": ["tune", "classification", other, *out],
        "not a run folder": ["classification", table, "--out", stranger],
        "holds no study of tune": ["tune", "classification", table, "--out", stranger],
        "no run folder": ["evaluate", stranger, "--data", table],
    }
    refused = commands(*([*map(str, command)] for command in wrong.values()))
    assert refused.returncode == 1
    for message, line in zip(wrong, refused.stderr.splitlines(), strict=True):
        assert message in line

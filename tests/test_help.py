"""The help of every option of every command is a phrase of the thing itself, and a sentence."""

import argparse
import inspect
import os
import re
import subprocess
import sys

import click
import pytest

from seqkeras.__main__ import SERVING
from seqkeras.analysis.__main__ import FIGURES
from seqkeras.analysis.__main__ import main as figure
from seqkeras.export.__main__ import main as export
from seqkeras.serving.__main__ import main as serving
from seqkeras.serving.triton import main as triton
from seqkeras.training.commands import command
from seqkeras.training.describe import DESCRIBE, describe_command
from seqkeras.training.evaluate import EVALUATE, evaluate_command
from seqkeras.training.tasks import TASKS
from seqkeras.training.tuning.command import TUNE, tune_command

PREPOSITIONS = """about above after among as at before behind beside between beyond by during for
from in inside instead into like of on onto over per than through to under until up with within
without""".split()
BACK_REFERENCES = """also and how it its itself or so such that their them there these they this
those what when where whether which who whom whose""".split()
BACK_INSIDE = r"\b((that|those) (of|whose)|as of|such (a|an|runs|rows)|of theirs?|see --)\b"
OTHERS = {  # that are no tasks
    EVALUATE: evaluate_command,
    DESCRIBE: describe_command,
    TUNE: lambda: tune_command(TASKS).commands["classification"],
}
PARSED = {
    "export": (export, []),
    **{f"serving {name}": (serving, [name]) for name in SERVING},
    "serving.triton": (triton, []),
    **{f"figure {name}": (figure, [name]) for name in FIGURES},
}


def problem_of(text):
    """Return what is wrong with the help of an option, or None."""
    if not text:
        return "empty"
    words = re.findall(r"[a-z]+", text.lower())
    if words[0] in PREPOSITIONS:
        return f"begins with the preposition {words[0]}"
    first = "the same" if words[:2] == ["the", "same"] else words[0]
    if first in (*BACK_REFERENCES, "the same"):
        return f"points back with {first}"
    if back := re.search(BACK_INSIDE, text):
        return f"points back with {back[0]}"
    if not re.fullmatch(r"[A-Z].*\.", text, re.DOTALL):
        return "is no sentence: a capital at the beginning, a full stop at the end"
    return None


def task_helps(name):
    """Return a dictionary: option -> help, of a command of `seqkeras train`."""
    made = OTHERS[name]() if name in OTHERS else command(name, TASKS[name])
    return {
        parameter.name: parameter.help
        for parameter in made.params
        if not (name in OTHERS and parameter.param_type_name == "argument")  # named by usage
    }


def parsed_helps(name, monkeypatch):
    """Return a dictionary: option -> help, of a command that argparse reads."""
    parsers = []
    monkeypatch.setattr(
        argparse.ArgumentParser, "print_help", lambda parser: parsers.append(parser)
    )
    main, arguments = PARSED[name]
    with pytest.raises(SystemExit, match="0"):
        main([*arguments, "--help"])
    (parser,) = parsers
    return {action.dest: action.help for action in parser._actions if action.dest != "help"}


def problems(helps):
    found = {name: (problem_of(text), text) for name, text in helps.items()}
    return {name: told for name, told in found.items() if told[0]}


@pytest.mark.parametrize("name", [*TASKS, *OTHERS])
def test_the_help_of_training_names_the_thing(name):
    assert not problems(task_helps(name))


@pytest.mark.parametrize("name", TASKS)
def test_help_keeps_the_lines_of_an_example_file(name):
    made, text = command(name, TASKS[name]), inspect.getdoc(TASKS[name])
    shown = click.Context(made, info_name=name).get_help()
    for block in re.findall(r"(?m)(?:^    .*\n|^\n(?=    ))+", text):
        lines = (f"  {line}".rstrip() for line in block.strip("\n").splitlines())
        assert "\n".join(lines) in shown


@pytest.mark.parametrize(
    "name, required",
    [
        ("several", "--pretrained"),
        ("multiple-choice", "--pretrained"),
        ("prompt-answer", "--start-from"),
        ("forecasting", "--targets"),
    ],
)
def test_help_says_what_must_be_given_and_the_default_that_follows(name, required):
    made = command(name, TASKS[name])
    context = click.Context(made, info_name=name)
    helps = {
        parameter.opts[0]: parameter.get_help_record(context)[1]
        for parameter in made.params
        if isinstance(parameter, click.Option)
    }
    assert {option for option in helps if "[required]" in helps[option]} == {"--out", required}
    defaults = TASKS[name].defaults_with().get("pretrained", {})
    if required == "--pretrained":
        assert f"[default: {defaults['batch_size']};" in helps["--batch-size"]
        assert "otherwise" not in helps["--weight-decay"]


@pytest.mark.parametrize("name", PARSED)
def test_the_help_of_export_and_serving_names_the_thing(name, monkeypatch):
    helps = parsed_helps(name, monkeypatch)
    assert helps and not problems(helps)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Of two labels that whose F1 is measured.", "begins with the preposition of"),
        ("Those of both whose values are known.", "points back with those"),
        ("The same with a decimal comma.", "points back with the same"),
        ("Name of that of labels.", "points back with that of"),
        ("Columns of such a row.", "points back with such a"),
        (
            "size of each state",
            "is no sentence: a capital at the beginning, a full stop at the end",
        ),
        ("", "empty"),
        ("Learning rate at the end of warm-up.", None),
    ],
)
def test_a_fragment_is_refused(text, problem):
    assert problem_of(text) == problem


@pytest.mark.parametrize("words", [["--help"], ["export", "--help"], ["predict", "--help"]])
def test_help_that_nobody_reads_to_its_end_is_no_error(words):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "seqkeras", *words]
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, env=buffered)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")

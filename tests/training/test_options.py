"""Options from the command line and from a file."""

import dataclasses
import re
import sys

import click
import pytest
from click.testing import CliRunner

from seqkeras.training.__main__ import main as train
from seqkeras.training.commands import OF_RUN, command
from seqkeras.training.options import (
    DataFile,
    FitOptions,
    Options,
    argument,
    at_least,
    option,
    options_of,
    part,
    shown,
    values_of,
)
from seqkeras.training.options.documents import Texts
from seqkeras.training.tasks import TASKS


class ToyOptions(FitOptions):
    """Takes options and a file."""

    file: str = argument(DataFile(), "Training file.")
    units: int = option(11, at_least(1), "Size of a layer.")
    name: str | None = option(None, str, "Name of something.")


def given(arguments, folder):
    """The options that arguments and a config file give a task, or the error."""
    toy = command("toy", ToyOptions)
    try:
        options, *_ = toy.main([*arguments, "--out", str(folder / "run")], standalone_mode=False)
    except click.UsageError as error:
        return error.format_message()
    return options


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("text,label\n")
    return tmp_path


def test_a_toml_file_sets_the_options_and_the_file_that_is_read(rows):
    (rows / "folder").mkdir()
    (rows / "folder/toy.toml").write_text(
        '# a recipe\ntask = "toy"\nfile = "rows.csv"  # beside the command, not beside this\n'
        'units = 13\nlearning_rate = 1\nname = "an ü"\n'
    )
    found = given(["--config", "folder/toy.toml"], rows)
    assert found == ToyOptions(file="rows.csv", units=13, learning_rate=1.0, name="an ü")


def test_the_command_line_goes_before_the_file(rows):
    (rows / "other.csv").write_text("text,label\n")
    (rows / "toy.toml").write_text('file = "rows.csv"\nunits = 13\nseed = 5\n')
    found = given(["other.csv", "--config", "toy.toml", "--units", "17"], rows)
    assert (found.file, found.units, found.seed) == ("other.csv", 17, 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("units = ", "toy.toml is not a TOML file: Invalid value"),
        ("batch-size = 3", "toy.toml: batch-size is written batch_size here."),
        ("unitz = 3", "toy.toml: unitz is unknown (did you mean units?)"),
        ("what = 3", "toy.toml: what is unknown; known: seed, batch_size, "),
        (
            'unit = 3\nbatch-size = "x"\nname = 5',
            "toy.toml: unit is unknown (did you mean units?); batch-size is written batch_size "
            'here; batch_size must be a whole number; received "x"; name must be a string; '
            "received 5.",
        ),
        ("units = 3.5", "toy.toml: units must be a whole number; received 3.5."),
        ('units = 0\nfile = "rows.csv"', "0 is not in the range x>=1"),
        ('learning_rate = nan\nfile = "rows.csv"', "nan is not in the range 0<x<inf"),
        ("units = 2001-01-01", 'units must be a whole number; received "2001-01-01"'),
        ("[units]\nof = 3", 'units must be a whole number; received {"of": 3}'),
        ('task = "dates"', "toy.toml holds the options of another task, dates."),
        ('file = "nothing.csv"', "nothing.csv: no such file."),
        ("units = 3", "Missing argument 'FILE'."),
    ],
)
def test_a_wrong_file_of_options_gets_one_line(content, message, rows):
    (rows / "toy.toml").write_text(content)
    found = given(["--config", "toy.toml"], rows)
    assert message in found and "\n" not in found


def test_a_file_that_is_not_utf_8_gets_one_line(rows):
    (rows / "toy.toml").write_bytes(b'name = "\xff"')
    assert "toy.toml is not a TOML file: 'utf-8' codec" in given(["--config", "toy.toml"], rows)


def test_events_need_the_package_that_writes_them(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    assert given(["rows.csv"], rows) == (
        "--tensorboard needs the package tensorboard, which is not installed: pip install "
        "tensorboard, or choose --tensorboard false."
    )
    assert given(["rows.csv", "--tensorboard", "false"], rows).tensorboard is False


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (DataFile(), "rows: is a folder; name a file."),
        (Texts(), "rows: is a folder without records.json; name files of text, or a folder of r"),
    ],
)
def test_a_folder_in_place_of_a_file_is_said_to_be_one(kind, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    with pytest.raises(click.UsageError, match=message):
        kind.convert("rows", None, None)


def test_parts_have_the_values_of_the_options_that_hold_them():
    class Layers(Options):
        width: int = option(3, int, "Width.")
        units: int = option(5, int, "Size.")

    class Held(Options):
        layers: Layers = part(Layers)
        units: int = option(7, int, "Another default.")

    held = Held(width=11)
    assert held.layers == Layers(width=11, units=7) and (held.width, held.units) == (11, 7)
    assert dataclasses.replace(held, units=13).layers == Layers(width=11, units=13)
    assert values_of(held) == {"width": 11, "units": 7}
    assert held.is_given("width") and not held.is_given("units") and not held.is_given("depth")
    with pytest.raises(TypeError, match="Held: there is no option 'depth'"):
        Held(depth=2)
    with pytest.raises(AttributeError, match="Held: there is no option 'depth'"):
        _ = held.depth


@pytest.mark.parametrize("task", TASKS)
def test_no_options_have_more_than_two_bases_of_ours(task):
    kinds = [TASKS[task]]
    for kind in kinds:
        assert sum(issubclass(base, Options) for base in kind.__mro__[1:]) <= 2
        fields = dataclasses.fields(kind)
        kinds += [field.metadata["part"] for field in fields if "part" in field.metadata]


@pytest.mark.parametrize("task", TASKS)
def test_the_whole_help_lists_everything_once(task):
    listed = listed_in_help(task, "--help-all")
    assert len(listed) == len({*listed})
    options = {shown(name) for name in options_of(TASKS[task]) if name not in ("file", "files")}
    assert options < {*listed}


@pytest.mark.parametrize("task", TASKS)
def test_the_help_lists_ten_options_at_most_and_the_way_to_all(task):
    listed = listed_in_help(task, "--help")
    assert {*OF_RUN} < {*listed}
    options = [name for name in listed if name.startswith("--") and name not in OF_RUN]
    assert 5 <= len(options) <= 10 and {"--passes", "--batch-size"} <= {*options}
    assert {shown(name) for name in TASKS[task].USUAL} <= {*options}


def listed_in_help(task, flag):
    """Return the options and arguments that a task's help lists."""
    text = CliRunner().invoke(command(task, TASKS[task]), [flag]).output
    _, *sections = re.split(r"^[A-Z][\w ]+:\n", text, flags=re.MULTILINE)
    return re.findall(r"^  (--[\w-]+|[A-Z.]+)", "".join(sections), re.MULTILINE)


@pytest.mark.parametrize(
    "task, option, message",
    [
        ("bert-pretraining", "--mask", "No such option '--mask' here; language-model, prompt-"),
        ("bilm", "--horizon", "No such option '--horizon' here; forecasting has it; leave it out."),
        ("bilm", "--unitz", "No such option '--unitz'"),
    ],
)
def test_an_option_of_another_task_is_told_with_its_tasks(task, option, message, capsys):
    assert train([task, "file", option, "prefix", "--out", "run"]) == 2
    assert message in capsys.readouterr().err

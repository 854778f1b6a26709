"""The console of a training: bars in a terminal, lines elsewhere."""

import os
import pty
import subprocess
import sys

import pytest

from seqkeras.training.console import say_single
from seqkeras.training.tasks.classification import ClassificationOptions
from seqkeras.training.tasks.forecasting import ForecastingOptions
from seqkeras.training.tasks.tagging import TaggingOptions
from seqkeras.training.tasks.trees import TreesOptions

SHOWN = """
from seqkeras.training.console import console, progress_bar

console.print("a line", style="bold")
with progress_bar() as bar:
    bar.advance(bar.add_task("training", total=2))
"""


def printed_to_a_terminal(**environment):
    """Return what a training's console writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    kept = {name: os.environ[name] for name in os.environ if name != "JPY_PARENT_PID"}
    environment = kept | {"TERM": "xterm-256color", "COLUMNS": "80"} | environment
    done = subprocess.Popen([sys.executable, "-c", SHOWN], stdout=theirs, env=environment)
    os.close(theirs)
    text = b""
    while True:
        try:
            text += (piece := os.read(ours, 4096))
        except OSError:  # of Linux, where the other end is closed
            piece = b""
        if not piece:
            break
    os.close(ours)
    assert done.wait() == 0
    return text.decode()


def test_a_terminal_shows_a_bar():
    printed = printed_to_a_terminal()
    assert "a line" in printed and "training" in printed and "\x1b[" in printed


@pytest.mark.parametrize("force", [{}, {"FORCE_COLOR": "1", "CLICOLOR": "1"}], ids=["", "colors"])
def test_a_cell_of_a_notebook_gets_lines_and_no_bar(force):
    printed = printed_to_a_terminal(JPY_PARENT_PID="1", **force)
    assert printed == "a line\r\n"


@pytest.mark.parametrize(
    "counts, told",
    [
        (
            {"Lieferung": 40, "Lieferug": 1, "Konto": 9},
            "1 label has a single row: 'Lieferug' (near 'Lieferung')",
        ),
        (
            {"a": 1, "konto": 1, "Konto": 2, "x": 3},
            "2 labels have a single row: 'konto' (near 'Konto'), 'a'",
        ),
        ({"yes": 2, "no": 2}, None),
        ({"one": 1, "two": 1, "more": 9}, None),  # so are most
    ],
)
def test_a_label_of_a_single_row_is_told_with_one_that_is_spelled_alike(counts, told, capsys):
    say_single("own.csv", counts)
    assert capsys.readouterr().out == ("" if told is None else f"  own.csv: {told}\n")


def test_few_labels_of_many_single_ones_are_named(capsys):
    counts = {f"rare {letter}": 1 for letter in "abcdefg"} | {str(place): 2 for place in range(9)}
    say_single("own.csv", counts, "tag", "word")
    line = capsys.readouterr().out
    assert line.startswith("  own.csv: 7 tags have a single word: 'rare a', ")
    assert line.endswith("'rare e', 2 more\n")


@pytest.mark.parametrize(
    "options, given, content, told",
    [
        (
            ClassificationOptions,
            {},
            "text,label\n" + "a fine film,good\na dull film,badd\n" * 9 + "a bad film,bad\n",
            "1 label has a single row: 'bad' (near 'badd')",
        ),
        (
            TaggingOptions,
            {},
            "Ada B-PERSON\nKing I-PERSON\nleft O\nOslo B-PLACE\n\n" * 9 + "Bea B-PERSN\n",
            "1 tag has a single word: 'PERSN' (near 'PERSON')",
        ),
        (
            TreesOptions,
            {},
            "(3 (2 a) (3 fine))\n(1 (2 a) (1 dull))\n" * 9 + "(33 (2 a) (3 good))\n",
            "1 label has a single node: '33'",
        ),
        (
            ClassificationOptions,
            {"group_column": "group", "batch_size": 1},
            "text,label,group\na,x,1.10\nb,y,1.1\nc,x,2\nd,y,2\n",
            "'1.1', '1.10' of 'group' are read as one, '1.1'",
        ),
        (
            ForecastingOptions,
            {"targets": ("load",), "series_column": "zone", "context": 13, "batch_size": 11},
            "zone,load\n" + "".join(f"{'7' if n % 2 else '7.0'},{n % 11}\n" for n in range(99)),
            "'7', '7.0' of 'zone' are read as one, '7'",
        ),
    ],
)
def test_reading_tells_labels_of_a_single_row_and_names_of_two_spellings(
    options, given, content, told, tmp_path, capsys
):
    file = tmp_path / ("own.csv" if content[0] in "tz" else "own.txt")
    file.write_text(content)
    options(file=str(file), seed=1, **given).make().reading.read()
    assert capsys.readouterr().out.splitlines()[0] == f"  {file}: {told}"

"""The console of a training: bars in a terminal, lines elsewhere."""

import os
import pty
import subprocess
import sys

import pytest

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

"""Print any text on any terminal."""

import os
import sys


def allow_any_text():
    """Let standard output write the escape of a character that its encoding lacks."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)  # a notebook's output has none
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def drop_output():
    """Drop what is not yet printed, as its reader has closed the pipe; return the exit status that
    a shell gives to this."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def one_line(value):
    """Return a value as one line, with control characters escaped."""
    text = " ".join(str(value).split())
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )

"""What commands print: any text, on any terminal."""

import sys


def allow_any_text():
    """Let standard output write the escape of a character that its encoding lacks."""
    if sys.stdout is not None:
        sys.stdout.reconfigure(errors="backslashreplace")


def one_line(value):
    """A value as one line, with escapes for what a terminal would act on, such as a colour."""
    text = " ".join(str(value).split())
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )

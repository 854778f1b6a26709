"""Numbers on the command line as types of argparse, and the options of sessions."""

import argparse
from collections.abc import Callable


def count(text: str) -> int:
    """Return a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1; received {text!r}")
    return int(text)


def seconds(most: int) -> Callable[[str], float]:
    """Return the type of a number over 0, up to `most`."""

    def read(text):
        try:
            number = float(text)
        except ValueError:
            number = 0
        if not 0 < number <= most:
            raise argparse.ArgumentTypeError(
                f"expected a number over 0, up to {most}; received {text!r}"
            )
        return number

    return read


def add_session_options(
    parser: argparse.ArgumentParser, whose: str, threads: str = "one a core"
) -> None:
    """Add the options of onnxruntime's sessions, which `load` takes.

    Args:
        parser: the parser that gets them.
        whose: precisions may be chosen, for the help.
        threads: the default number of threads, for the help.
    """
    parser.add_argument(
        "--precision", metavar="NAME", help=f"Precision, one of {whose}. Default: float32."
    )
    parser.add_argument(
        "--provider",
        action="append",
        metavar="NAME",
        help="Execution provider, repeatable. Default: CPU.",
    )
    parser.add_argument(
        "--threads",
        type=count,
        metavar="N",
        help=f"Threads of an operation. Default: {threads}.",
    )

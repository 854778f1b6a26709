"""The terminal: one console, and the look of every progress bar."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from seqkeras.terminal import one_line
from training.wording import counted

MOST_ROWS = 20  # of a table

console = Console(highlight=False, markup=False, soft_wrap=True)  # "[red]" may be a folder's name


def progress_bar():
    """A bar with a count and the time that remains; silent where output is no terminal."""
    return Progress(
        TextColumn("  {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def add_rows(table, rows):
    """Add the first rows to a table, and say how many there are more.

    Args:
        table: a `rich.table.Table`.
        rows: lists of texts, the most important first.
    """
    for row in rows[:MOST_ROWS]:
        table.add_row(*row)
    if len(rows) > MOST_ROWS:
        table.add_row(f"and {len(rows) - MOST_ROWS:,} more")


def say_left_out(reasons, noun):
    """Say how many examples of a file are left out, if there are any.

    Args:
        reasons: why each is left out, texts.
        noun: of an example.
    """
    if reasons:
        count = counted(len(reasons), f"{noun}s are", f"{noun} is")
        console.print(f"  {count} left out; the first: {one_line(reasons[0])}")

"""The terminal: one console, and the look of every progress bar."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

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

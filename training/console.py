"""The terminal: one console, and the look of every progress bar."""

from __future__ import annotations

import collections
import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from seqkeras.serving.categories import category_text
from seqkeras.serving.printing import as_typed
from seqkeras.terminal import one_line
from seqkeras.training.wording import counted, listed

if TYPE_CHECKING:
    from rich.table import Table

TYPED = as_typed(__package__, "train")
MOST_ROWS = 20  # of a table
MOST_SINGLE = 5  # labels of a single row that are named
NEAR = 0.75  # similarity of two labels of which one may be a typing error

# To `!seqkeras train …` a notebook's cell is a terminal, but one that stores all that a bar draws:
# a thousand bars a minute. Its kernel sets this variable.
_IN_NOTEBOOK = "JPY_PARENT_PID" in os.environ

console = Console(
    force_terminal=False if _IN_NOTEBOOK else None,
    highlight=False,
    markup=False,  # "[red]" may be a folder's name
    soft_wrap=True,
)


def progress_bar() -> Any:
    """Return a bar with a count and the time that remains; silent where output is no terminal."""
    return Progress(
        TextColumn("  {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def add_rows(table: Table, rows: Sequence[Any]) -> None:
    """Add the first rows to a table, and say how many there are more.

    Args:
        table: a `rich.table.Table`.
        rows: lists of texts, the most important first.
    """
    for row in rows[:MOST_ROWS]:
        table.add_row(*row)
    if len(rows) > MOST_ROWS:
        table.add_row(f"and {len(rows) - MOST_ROWS:,} more")


def say_left_out(reasons: Sequence[str], noun: str) -> None:
    """Say how many examples of a file are left out, if there are any.

    Args:
        reasons: why each is left out, texts.
        noun: noun of an example.
    """
    if reasons:
        count = counted(len(reasons), f"{noun}s are", f"{noun} is")
        console.print(f"  {count} left out; the first: {one_line(reasons[0])}")


def say_merged(path: Path | str, column: str, texts: Iterable[str]) -> None:
    """Say which texts of a column are read as one category, label or name, as "1.10" and "1.1" are.

    Args:
        path: path of the file.
        column: its name.
        texts: texts of all rows.
    """
    spellings = collections.defaultdict(set)
    for text in {text.strip() for text in texts}:
        spellings[category_text(text)].add(text)
    for category, spelled in sorted(spellings.items()):
        if len(spelled) > 1:
            console.print(
                f"  {one_line(path)}: {listed(sorted(spelled))} of {column!r:.40} are read as one, "
                f"{category!r:.40}"
            )


def say_single(
    path: Path | str, counts: Mapping[str, int], noun: str = "label", unit: str = "row"
) -> None:
    """Say which labels have a single row, and a label with more rows that is spelled alike, as a
    typing error makes a label; nothing where most labels have one row.

    Args:
        path: path of the file.
        counts: label -> number of its rows.
        noun, unit: nouns of a label and of a row.
    """
    single = [label for label, count in sorted(counts.items()) if count == 1]
    common = [label for label in counts if counts[label] > 1]
    if not single or len(single) > len(common):
        return
    near = {label: difflib.get_close_matches(label, common, 1, NEAR) for label in single}
    single.sort(key=lambda label: not near[label])
    told = [
        f"{label!r:.40}" + "".join(f" (near {other!r:.40})" for other in near[label])
        for label in single[:MOST_SINGLE]
    ]
    if len(single) > MOST_SINGLE:
        told.append(f"{len(single) - MOST_SINGLE:,} more")
    count = counted(len(single), f"{noun}s have", f"{noun} has")
    console.print(f"  {one_line(path)}: {count} a single {unit}: {', '.join(told)}")

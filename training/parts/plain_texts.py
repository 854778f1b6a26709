"""Plain texts of the user's, of training and of validation."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table

from seqkeras.data.texts import TextFile, read_text
from seqkeras.runs import RunError
from seqkeras.training.console import console
from seqkeras.training.options.held_out import MOST_CHARACTERS, share_held_out
from seqkeras.training.task import Scoring

MOST_LEARNED = 2**25  # characters of which subwords are learned


class MeasuredScoring(Scoring):
    """Base of the scores of plain text, which `measure` gives: no answer is wrong.

    Attributes:
        measured: what the scores are of, the title of their table.
    """

    measured: str

    def validation_scores(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, float]:
        return {}

    def tests(self, validation: Sequence[Any]) -> Iterable[tuple[str, list[Any]]]:
        return ()

    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        return {}

    def table(self, scores: Mapping[str, Any]) -> Any:
        table = Table(title=self.measured)
        table.add_column("")
        table.add_column("", justify="right")
        for name, value in scores.items():
            table.add_row(name.replace("_", " "), f"{value:,.4f}")
        return table


def perplexity(loss: float) -> float:
    """Return exp(loss), or the exponential of 700, which float64 can hold."""
    return math.exp(min(loss, 700.0))


def read_texts(options: Any, task: str, at_lines: bool = False) -> tuple[list[TextFile], list[str]]:
    """Return the training texts, which are read from their files, and the validation texts; a line
    says how long they are.

    Args:
        options: have `files`, `validation`, and `held_out`, the last share of the files that is
            validation where no file of it is named.
        task: name of the task.
        at_lines: whether the part that is held out begins with a line.

    Raises:
        DataError: if a file can not be read.
        RunError: if one of the two would be empty.
    """
    texts = [*map(TextFile, options.files)]
    if options.validation is None:
        share = share_held_out(options, sum(map(len, texts)), most=MOST_CHARACTERS)
        texts, held_out = _split(texts, share, at_lines)
        if not texts or not held_out:
            raise RunError(
                f"{' and '.join(options.files)}: --held-out {share} leaves nothing "
                f"for {'validation' if texts else 'training'}."
            )
    else:
        held_out = [read_text(options.validation)]
    sizes = [sum(map(len, part)) for part in (texts, held_out)]
    console.print(f"{task}: {sizes[0]:,} characters of training and {sizes[1]:,} of validation")
    return texts, held_out


def _split(texts, held_out, at_lines):
    """Return the texts without their last share, and that."""
    train, left = [], int((1 - held_out) * sum(map(len, texts)))
    for index, text in enumerate(texts):
        if len(text) > left:
            first = text.cut(left)
            rest = text.rest(left)
            if at_lines:
                first, rest = _at_line(first, rest)
            parts = [rest, *("".join(file) for file in texts[index + 1 :])]
            train = [part for part in (*train, first) if any(map(str.strip, part))]
            return train, [part for part in parts if part.strip()]
        train.append(text)
        left -= len(text)
    return train, []


def _at_line(first, rest):
    """Return the two parts of a file, so that the second one begins with the last line of the
    first."""
    line = ""
    for part in first:
        line = (line + part).rpartition("\n")[2]
    return first.cut(len(first) - len(line)), line + rest

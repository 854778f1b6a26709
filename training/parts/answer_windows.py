"""Where answers stand in the windows that a model reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.data.batches import Sequences
from seqkeras.data.nested import NestedSequences

if TYPE_CHECKING:
    from seqkeras.data.squad import Answer


def tokens_of(row: Any, answer: Answer) -> tuple[int, int] | None:
    """Return (first, last) token of a context of those that share a character with an answer; None
    if no token that is read does.

    Args:
        row: a `seqkeras.serving.pipelines.questions.Question`.
        answer: a `seqkeras.data.squad.Answer`.
    """
    start, end = answer.start, answer.start + len(answer.text)
    tokens = [
        index
        for index, (begins, ends) in enumerate(row.offsets)
        if begins < end and ends > start and begins < ends
    ]
    is_cut_off = row.offsets[-1][1] < end and _is_cut(row, end)
    return None if not tokens or is_cut_off else (tokens[0], tokens[-1])


def _is_cut(row, end):
    """Return whether a visible part of an answer that ends here stands behind the last token."""
    return bool(row.context[row.offsets[-1][1] : end].strip())


def places_in_windows(row: Any, span: tuple[int, int] | None) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of an answer in each window: positions of the window's tokens.

    Position 0, the first special token, stands for none: without an answer, and in a window that
    does not hold the answer whole.

    Args:
        row: a `seqkeras.serving.pipelines.questions.Question`.
        span: (first, last) token of the context, or None.

    Reference: Devlin et al. 2019, section 4.3, https://arxiv.org/abs/1810.04805;
    https://github.com/google-research/bert (run_squad.py)
    """
    for tokens, first in zip(row.windows.tokens, row.windows.firsts, strict=True):
        if span is None or span[0] < first or span[1] >= first + len(tokens):
            yield 0, 0
        else:
            yield tuple(tokens.start + index - first for index in span)


def inputs_of_words(rows: Sequence[Any]) -> tuple[dict[str, Any], np.ndarray]:
    """Return the inputs of `seqkeras.models.BiDAF`, and the lengths of the contexts.

    Args:
        rows: the windows of `seqkeras.serving.pipelines.questions.WordQuestions`.
    """
    inputs = {}
    for side in ("context", "query"):
        ids = Sequences([getattr(row, f"{side}_ids") for row in rows])
        characters = [getattr(row, f"{side}_characters") for row in rows]
        inputs[f"{side}_ids"], inputs[f"{side}_lengths"] = ids, ids.lengths
        inputs[f"{side}_characters"] = NestedSequences(characters)
    return inputs, np.array([len(row) for row in rows])

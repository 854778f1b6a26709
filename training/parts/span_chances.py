"""What a model holds for possible of a question: all spans of the context, and no answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from seqkeras.serving.pipelines.answer import Settings, visible_tokens
from seqkeras.serving.pipelines.spans import null_score, scores_by_window
from seqkeras.training.calibration import Chances

if TYPE_CHECKING:
    from seqkeras.serving.pipelines.questions import Question
    from seqkeras.serving.pipelines.spans import Window
    from seqkeras.serving.results import Span

NULL, RIGHT = "null", "right"
WIDTH = 0.25  # of logits that count as one, but for the answer's and the target's


def span_chances(
    question: Question,
    windows: Sequence[Window],
    answer: Span,
    target: tuple[int, int] | str | None,
    settings: Settings,
    example: int,
) -> Chances | None:
    """Return the `Chances` of a question; None where the model can not give the target.

    Args:
        question: the `Question`.
        windows: its list of `Window`.
        answer: its `Span`.
        target: (first, last) token of the right answer; `NULL` for none; `RIGHT` where the answer
            that was given is right, wherever in the context it stands; None where it is not read.
        settings: the settings of `Answer`.
        example: number of the question.
    """
    null = null_score(windows)
    by_window = [*scores_by_window(windows, visible_tokens(question), settings.answer_length)]
    others = np.concatenate([scores[scores > -np.inf] for scores in by_window])
    if settings.no_answer:
        others = np.append(others, null)
    named = [float(np.log(answer.score) + np.logaddexp.reduce(others))]
    if target == NULL and settings.no_answer:
        named.append(null)
    elif target != RIGHT:
        score = None if target in (NULL, None) else _score(windows, by_window, *target)
        if score is None:
            return None
        named.append(score)
    for score in named:
        others = np.delete(others, np.abs(others - score).argmin())
    values, counts = np.unique(np.round(others / WIDTH) * WIDTH, return_counts=True)
    return Chances(
        np.append(named, values),
        target=len(named) - 1,
        example=example,
        counts=np.append(np.ones(len(named)), counts),
        answer=0,
    )


def _score(windows, by_window, first, last):
    """Return the score of a span; None if no window has it."""
    for window, scores in zip(windows, by_window, strict=True):
        start, more = first - window.first, last - first
        if 0 <= start < len(scores) and more < scores.shape[1] and scores[start, more] > -np.inf:
            return float(scores[start, more])
    return None

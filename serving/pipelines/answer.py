"""Answer questions about a context by a span of the context."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from ..checks import require_count, require_number
from ..manifest import Manifest
from ..opening import Runtime
from ..results import Span
from ..text import whole_characters
from .attention import AttentionGraph
from .batching import TOKEN_BUDGET, in_groups
from .inputs import encoded, one_or_all, parts_of, require_words
from .model import Model, unwarned
from .pipeline import Pipeline
from .questions import Question, SubwordQuestions, WordQuestions
from .settings import read_settings, wrong_output
from .spans import Window, best_spans


@dataclass(frozen=True)
class Settings:
    """See `serving.pipelines`."""

    start: str
    end: str
    window: int = 384
    stride: int = 128
    question_length: int = 64
    word_length: int = 16
    answer_length: int = 30
    no_answer: bool = False
    no_answer_threshold: float = 0.0

    def problems(self, outputs):
        """Yield what is wrong."""
        for field in ("start", "end"):
            yield from wrong_output(outputs, getattr(self, field), ("batch", "length"), field)
        for field in ("stride", "question_length", "word_length", "answer_length"):
            if getattr(self, field) < 1:
                yield f"settings.{field} must be at least 1; received {getattr(self, field)}"


class Answer(Pipeline):
    """The span of a context that answers a question.

    A model of subwords reads a long context in windows, each after the whole question; the best
    span of all windows is the answer. If the model allows questions without an answer, there is
    none if

        best span <= null + no_answer_threshold,  null = start(0) + end(0)

    A model of words and characters (BiDAF) reads a context at once, up to its limit.

    A span is not blank, and has no white space around it. Tokens may share a character, or differ
    only in white space: where spans have equal text, only the best span counts.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`, how its graph is run.

    Raises:
        BundleError: if the graph, the tokenizer or the settings are not what the pipeline needs.

    Reference: Devlin et al. 2019, sections 4.2 and 4.3, https://arxiv.org/abs/1810.04805

    Example:
        >>> from seqkeras.serving import load
        >>> answer, context = load("bundles/questions", threads=1), "A model may be small."
        >>> span = answer(("What is small?", context))
        >>> context[span.start : span.end] == span.text
        True
    """

    fields = ("question", "context")

    def __init__(self, folder: Path, manifest: Manifest, runtime: Runtime | None = None):
        self.manifest = manifest
        self._settings = read_settings(folder, manifest, Settings)
        reader = WordQuestions if "words" in manifest.tokenizers else SubwordQuestions
        self._questions = reader.of_bundle(folder, manifest, self._settings)
        outputs = [self._settings.start, self._settings.end]
        self._model = Model(folder, manifest, runtime, outputs, reader.packing)
        self._attention = AttentionGraph(folder, manifest, runtime, reader.packing)

    @overload
    def __call__(
        self, inputs: tuple[str, str] | Mapping[str, str], *args: Any, **options: Any
    ) -> Span: ...

    @overload
    def __call__(self, inputs: list, *args: Any, **options: Any) -> list[Span]: ...

    def __call__(
        self,
        inputs: tuple[str, str] | Mapping[str, str] | list,
        n_best: int = 1,
        no_answer_threshold: float | None = None,
        truncate: bool = False,
        token_budget: int = TOKEN_BUDGET,
        attention: bool | str = False,
    ) -> Span | list[Span]:
        """Answer a question, or each one of a list.

        Args:
            inputs: a question with its context, as a tuple or as a dictionary of "question" and
                "context"; or a list of these.
            n_best: number of spans to return.
            no_answer_threshold: least margin of an answer over none, in logits; None for the
                manifest's, and for a model that always has an answer.
            truncate: cut a question over the limit, and for a model of words also a context; with
                windows, contexts may have any length.
            token_budget: the most tokens of a batch, padding among them.
            attention: how much each token attends to each other, of a bundle that was exported with
                --attention-heads: True for the mean of the last layer's heads, "heads" for each
                head of each layer, "words" for weights of whole words. A context in windows
                has the weights of the window in which the answer begins, with most context; without
                an answer the first window's. BiDAF gives how much each word of the context attends
                to each of the question, and with "query_to_context" the other way.

        Returns:
            A `Span`; for a list, a list of them, in its order.

        Raises:
            ValueError: if an input is refused; nothing is answered then.
            NoFiniteNumber: a BundleError, if the model gives NaN or infinity for an input.
        """
        n_best = require_count("Answer: n_best", n_best)
        threshold = self._threshold(no_answer_threshold)
        self._attention.require("Answer", attention)
        rows = encoded(inputs, "Answer: input", self.encode, truncate, token_budget)
        answers = [
            span_of(row, windows, self._settings, n_best, threshold)
            for row, windows in zip(rows, self.windows(rows, token_budget))
        ]
        read = (_window(row, answer) for row, answer in zip(rows, answers))
        answers = self._attention.attach(answers, read, attention, token_budget)
        return one_or_all(inputs, answers, "Answer: input")

    def encode(self, value: Any, name: str = "Answer: input", truncate: bool = False) -> Question:
        """Return the `Question` that the model reads.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        question, context = parts_of(value, self.fields, name)
        require_words(question, f"{name}, question")
        require_words(context, f"{name}, context")
        return self._questions.read(question, context, name, truncate)

    def windows(
        self, rows: Sequence[Question], token_budget: int = TOKEN_BUDGET
    ) -> list[list[Window]]:
        """Return for each `Question` its windows, with the model's logits."""
        texts = [row.windows.rows for row in rows]
        read = [window for text in texts for window in text]
        logits = self._model.answer(read, lambda _, *outputs: outputs, token_budget)
        return [
            [
                Window(start, end, tokens, first)
                for (start, end), tokens, first in zip(
                    row_logits, row.windows.tokens, row.windows.firsts
                )
            ]
            for row, row_logits in zip(rows, in_groups(logits, texts))
        ]

    def marked_text(self, value: Any) -> str:
        """Return the text of an input in which answers have their places: the context.

        Raises:
            ValueError: if the input is no pair of a question and a context.
        """
        _, context = parts_of(value, self.fields, "Answer: input")
        return context

    def _threshold(self, threshold):
        if threshold is None:
            return None
        if not self._settings.no_answer:
            raise ValueError(
                "Answer: no_answer_threshold must be None; this model always has an answer."
            )
        return require_number("Answer: no_answer_threshold", threshold)


@unwarned
def span_of(row, windows, settings, n_best=1, threshold=None):
    """Return the `Span` that answers a `Question`.

    Args:
        row: the `Question`.
        windows: its list of `Window`.
        settings: the settings of `Answer`.
        n_best: number of spans to return.
        threshold: least margin of an answer over none; None for the settings' threshold.

    Returns:
        The span; its score is NaN if the logits are not finite.
    """
    places, null, total = _best_places(row, windows, settings.answer_length, n_best)
    if not places:
        return Span("", None, None, np.nan)
    margin = None
    if settings.no_answer:
        margin = max(places.values()) - null
        total = float(np.logaddexp(total, null))
    spans = [
        Span(row.context[start:end], start, end, float(np.exp(score - total)), margin)
        for (start, end), score in places.items()
    ]
    threshold = settings.no_answer_threshold if threshold is None else threshold
    if margin is not None and margin <= threshold:
        spans.insert(0, Span("", None, None, float(np.exp(null - total)), margin))
    best, *others = spans[:n_best]
    return Span(best.text, best.start, best.end, best.score, margin, tuple(others))


def _best_places(row, windows, answer_length, n_best):
    """Return {(start, end): score} of up to n_best spans, the best first.

    Also returns the score of no answer and the total of `best_spans`.
    """
    visible, count = visible_tokens(row), n_best
    while True:
        spans, null, total = best_spans(windows, visible, answer_length, count)
        places = {}
        for score, first, last in spans:
            span = _place(row.context, row.offsets[first][0], row.offsets[last][1])
            places.setdefault(span, score)
        if len(places) >= n_best or len(spans) < count:
            return places, null, total
        count *= 2


def visible_tokens(row):
    """Return (N,) booleans, which tokens of a `Question`'s context are not white space."""
    return np.array([bool(row.context[start:end].strip()) for start, end in row.offsets])


def _window(row, answer):
    """Return the row of the `Question`'s window in which an answer begins."""
    if answer.start is None:
        return row.windows.rows[0]
    first = next(index for index, (_, end) in enumerate(row.offsets) if end > answer.start)
    return row.windows.rows[row.windows.owners()[first]]


def _place(context, start, end):
    """Return (start, end) of a span, with whole characters and without white space around it."""
    start, end = whole_characters(context, start, end)
    text = context[start:end].lstrip()
    return end - len(text), end - len(text) + len(text.rstrip())

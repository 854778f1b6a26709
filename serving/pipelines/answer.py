"""Questions about a context, answered by a part of it."""

from dataclasses import dataclass

import numpy as np

from ..checks import require_count
from ..manifest import BundleError
from ..results import Span
from ..text import Subwords
from .batching import TOKEN_BUDGET
from .inputs import TextReader, each_of, one_or_all, parts_of, require_words, too_long
from .model import Model
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
    answer_length: int = 30
    no_answer: bool = False
    no_answer_threshold: float = 0.0

    def problems(self, outputs):
        """Yield what is wrong."""
        for field in ("start", "end"):
            yield from wrong_output(outputs, getattr(self, field), ("batch", "length"), field)
        for field in ("stride", "question_length", "answer_length"):
            if getattr(self, field) < 1:
                yield f"settings.{field} must be at least 1; received {getattr(self, field)}"


@dataclass(frozen=True)
class _Row:
    """A question about a context in windows.

    Attributes:
        context: as it was given.
        encodings: of the windows.
        tokens: for each window, the range of those of its tokens that are the context's.
        step: how many tokens of the context a window begins behind the one before.
        offsets: where each token of the context lies in it.
    """

    context: str
    encodings: list
    tokens: list
    step: int
    offsets: list

    def __len__(self):
        return sum(map(len, self.encodings))


class Answer:
    """The part of a context that answers a question.

    A context that is too long is read in windows, each behind the whole question; the best span of
    all windows is the answer. A model that knows questions without one gives none where

        best span <= null + no_answer_threshold,  null = start(0) + end(0)

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`, how its graph is run.

    Raises:
        BundleError: if the graph, the tokenizer or the settings are not what the pipeline needs.

    Reference: Devlin et al. 2019, sections 4.2 and 4.3, https://arxiv.org/abs/1810.04805
    """

    fields = ("question", "context")

    def __init__(self, folder, manifest, runtime=None):
        self.manifest = manifest
        self._settings = read_settings(folder, manifest, Settings)
        self._tokenizer = TextReader(folder, manifest).tokenizer
        if not isinstance(self._tokenizer, Subwords):
            raise BundleError(
                f"{folder}: Answer needs a tokenizer of pairs, WordPiece or byte-level BPE. "
                "Export the bundle again."
            )
        outputs = [self._settings.start, self._settings.end]
        self._model = Model(folder, manifest, runtime, outputs)
        self._window = min(self._settings.window, manifest.limits.source_length)
        num_special = len(self._tokenizer.analyze("", ""))
        if self._window <= self._settings.question_length + num_special:
            raise BundleError(
                f"{folder}: manifest.json: settings.window and limits.source_length must leave "
                f"room for a context behind settings.question_length, "
                f"{self._settings.question_length}, and {num_special} special tokens; received "
                f"{self._settings.window} and {manifest.limits.source_length}. "
                "Export the bundle again."
            )

    def __call__(
        self,
        inputs,
        n_best=1,
        no_answer_threshold=None,
        truncate=False,
        token_budget=TOKEN_BUDGET,
    ):
        """Answer a question, or each one of a list.

        Args:
            inputs: a question with its context, as a tuple or as a dictionary of "question" and
                "context"; or a list of such.
            n_best: how many spans to give.
            no_answer_threshold: how much better than none an answer must be, in logits; None for
                the manifest's.
            truncate: cut a question that is over the limit; contexts may have any length.
            token_budget: the most tokens of a batch, padding among them.

        Returns:
            A `Span`; for a list, the list of theirs, in its order.

        Raises:
            ValueError: if an input is refused; nothing is answered then.
        """
        n_best = require_count("Answer: n_best", n_best)
        threshold = self._settings.no_answer_threshold
        threshold = threshold if no_answer_threshold is None else float(no_answer_threshold)
        each, names = each_of(inputs, "Answer: input")
        rows = [self.encode(value, name, truncate) for value, name in zip(each, names)]
        encodings = [encoding for row in rows for encoding in row.encodings]
        logits = iter(self._model.answer(encodings, lambda _, *each: each, token_budget))
        answers = [
            self._answer(row, [next(logits) for _ in row.encodings], n_best, threshold)
            for row in rows
        ]
        return one_or_all(inputs, answers)

    def encode(self, value, name="Answer: input", truncate=False):
        """Return what the model reads of a question and its context.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        question, context = parts_of(value, self.fields, name)
        require_words(question, f"{name}, question")
        require_words(context, f"{name}, context")
        limit, stride = self._settings.question_length, self._settings.stride
        length = len(self._tokenizer.encode(question))
        if length > limit and not truncate:
            raise ValueError(too_long(f"{name}, question", length, limit))
        encodings = self._tokenizer.windows(question, context, self._window, stride, limit)
        parts = [_own_tokens(each)[min(length, limit) :] for each in encodings]
        if not parts[0]:
            raise ValueError(f"{name}, context has no token; write something to answer from.")
        step = min(stride, len(parts[0]))
        offsets = []
        for number, (encoding, tokens) in enumerate(zip(encodings, parts)):
            offsets[number * step :] = [encoding.offsets[token] for token in tokens]
        tokens = [range(part[0], part[-1] + 1) for part in parts]
        return _Row(context, encodings, tokens, step, offsets)

    def _answer(self, row, logits, n_best, threshold):
        windows = [
            Window(start, end, tokens, number * row.step)
            for number, ((start, end), tokens) in enumerate(zip(logits, row.tokens))
        ]
        spans, null, total = best_spans(windows, self._settings.answer_length, n_best)
        margin = None
        if self._settings.no_answer:
            margin, total = spans[0][0] - null, float(np.logaddexp(total, null))
        found = [self._span(row, *span, total, margin) for span in spans]
        if margin is not None and margin <= threshold:
            none = Span("", None, None, float(np.exp(null - total)), margin)
            found = [none, *found][:n_best]
        best, *others = found
        return Span(best.text, best.start, best.end, best.score, margin, tuple(others))

    def _span(self, row, score, first, last, total, margin):
        start, end = row.offsets[first][0], row.offsets[last][1]
        return Span(row.context[start:end], start, end, float(np.exp(score - total)), margin)


def _own_tokens(encoding):
    """Return the places of the tokens that are no special ones."""
    return [token for token, offset in enumerate(encoding.offsets) if offset is not None]

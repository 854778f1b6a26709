"""Classify texts, pairs of texts, trees or frames, or predict a number."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, overload

import numpy as np

from ..checks import require_count, require_flag
from ..manifest import Manifest
from ..opening import Runtime
from ..results import Classification, Node
from ..rows import Rows
from ..streams import StreamGraph, Streaming
from ..text.trees import SHAPES
from .arrays import FRAMES, FrameReader, takes_frames
from .attention import AttentionGraph
from .batching import TOKEN_BUDGET, in_groups
from .inputs import TextReader, encoded, one_or_all, parts_of
from .model import ROLE, TOKENS, Model, sigmoid, softmax, unwarned
from .pipeline import Pipeline
from .settings import (
    read_settings,
    require_windows,
    row_problems,
    stride_problems,
    wrong_logits,
)
from .trees import TreeReader
from .windows import Windows

PAIR = ("text", "pair")


@dataclass(frozen=True)
class Settings:
    """See `serving.pipelines`."""

    output: str | None = None
    labels: tuple[str, ...] = ()
    multi_label: bool = False
    threshold: float = 0.5
    none_of_these: bool = False
    pairs: bool | None = None
    stride: int | None = None
    rows: Rows | None = None

    axes: ClassVar[tuple[str, ...]] = ("batch",)

    def problems(self, outputs):
        """Yield what is wrong."""
        shape = outputs[self.output].shape[-1:] if self.output in outputs else ()
        one_of_two = len(self.labels) == 2 and not self.multi_label and shape == (1,)
        labels = self.labels[1:] if one_of_two else self.labels  # the logit of the second label
        yield from wrong_logits(outputs, self.output, self.axes, labels, self.none_of_these)
        if self.none_of_these and (self.multi_label or not self.labels):
            yield "settings.none_of_these needs labels, of which a text has one"
        if len(set(self.labels)) < len(self.labels):
            yield "settings.labels must be distinct"
        if self.multi_label and not self.labels:
            yield "settings.multi_label needs labels"
        if not 0 < self.threshold < 1:
            yield f"settings.threshold must be between 0 and 1; received {self.threshold}"
        yield from stride_problems(self.stride)
        if self.stride is not None and self.pairs is not False:
            yield "settings.stride needs settings.pairs false: a pair is not read in windows"
        yield from row_problems(self.rows)


@dataclass(frozen=True)
class TreeSettings(Settings):
    """Settings of a model with logits for every node of a tree."""

    tree_shape: str | None = None

    axes = ("batch", "nodes")

    def problems(self, outputs):
        """Yield what is wrong."""
        yield from super().problems(outputs)
        if self.tree_shape not in (None, *SHAPES):
            yield (
                f"settings.tree_shape must be {', '.join(SHAPES)} or null; received "
                f"{self.tree_shape!r}"
            )


class _TextsOrPairs:
    """Texts, or pairs of texts, to `Encoding`s; with a stride, texts to `Windows`."""

    unit, packing = "text", TOKENS

    def __init__(self, folder, manifest, pairs, stride):
        self._reader, self._pairs, self._stride = TextReader(folder, manifest), pairs, stride
        self.tokenizer = self._reader.tokenizer
        takes_pairs = pairs is not False and self._reader.takes_pairs
        self.fields = PAIR if takes_pairs else PAIR[:1]

    def read(self, text, name, truncate):
        if isinstance(text, Mapping) and set(text) == {"text"}:
            text = text["text"]
        is_pair = isinstance(text, (tuple, Mapping))
        if self._pairs not in (None, is_pair):
            expected = "a pair of texts" if self._pairs else "one text, and no pair"
            raise ValueError(f"{name} must be {expected}.")
        if self._stride is not None:
            return Windows.of(self._reader.read_windows(text, name, self._stride), self._stride)
        if not is_pair:
            return self._reader.read(text, name, truncate)
        names = [f"{name}, {field}" for field in PAIR]
        return self._reader.read_pair(*parts_of(text, PAIR, name), names, truncate)

    def read_all(self, texts):
        """Return the `Encoding`s of texts, or None if `read` must look at one of them."""
        plain = not self._pairs and self._stride is None
        return self._reader.read_all(texts) if plain else None


class Classify(Pipeline):
    """The label of a text, of a pair of texts, of a tree, or of frames.

        scores = softmax(logits), or sigmoid(logits) of a model of several labels at once
        scores = 1 - sigmoid(logit), sigmoid(logit) of a model of one logit for two labels

    If the settings have `none_of_these`, the last logit is the logit of None: the answer of a text
    that has none of the labels.

    A model without labels is a regression: its number is the score. A tree has logits at every
    node; its answer is the root's.

    A text over the limit is refused or cut. If the settings have a `stride`, it is read in windows:

        logits(text) = mean of the logits of its windows

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`, how its graph is run.

    Attributes:
        fields: the names of an input's parts, such as "text" and "pair".
        reads_json: whether inputs are arrays, which the command line reads as JSON.
        rows: the `serving.rows.Rows` of the settings, or None.

    Raises:
        BundleError: if the graph, the tokenizer or the settings are not what the pipeline needs.

    Reference: trees: Tai et al. 2015, section 4.1, https://arxiv.org/abs/1503.00075

    Example:
        >>> from seqkeras.serving import load
        >>> classify = load("bundles/reviews", threads=1)
        >>> good, bad = classify(["A model may be small.", "Nothing else is said here."], top=2)
        >>> len(good.scores), [*good.scores][:1] == [*good.labels]
        (2, True)
    """

    def __init__(self, folder: Path, manifest: Manifest, runtime: Runtime | None = None):
        self.manifest = manifest
        self._reads_trees = "words" in manifest.tokenizers
        kind = TreeSettings if self._reads_trees else Settings
        self._settings = read_settings(folder, manifest, kind)
        self._reader: FrameReader | TreeReader | _TextsOrPairs
        self.reads_json = takes_frames(manifest, ROLE)
        self.rows = self._settings.rows
        if self.reads_json:
            self._reader = reader = FrameReader.of_graph(
                folder, manifest, ROLE, self._settings.rows
            )
            graph = StreamGraph(folder, manifest, runtime, self._settings.output, {FRAMES})
            self.streaming = Streaming(
                "Classify", graph, reader.follow, self._answer_of_frame, self.rows
            )
        elif self._reads_trees:
            shape = self._settings.tree_shape
            self._reader = TreeReader(folder, manifest, shape)
        else:
            self._reader = _TextsOrPairs(
                folder, manifest, self._settings.pairs, self._settings.stride
            )
        require_windows(folder, self._settings.stride, getattr(self._reader, "tokenizer", None))
        self.fields = self._reader.fields
        outputs = [self._settings.output]
        packing = self._reader.packing
        self._model = Model(folder, manifest, runtime, outputs, packing)
        self._attention = AttentionGraph(folder, manifest, runtime, packing)

    @overload
    def __call__(
        self, texts: str | tuple[str, str] | Mapping[str, str], *args: Any, **options: Any
    ) -> Classification: ...

    @overload
    def __call__(self, texts: list, *args: Any, **options: Any) -> list[Classification]: ...

    def __call__(
        self,
        texts: str | tuple[str, str] | Mapping[str, str] | list,
        truncate: bool = False,
        token_budget: int = TOKEN_BUDGET,
        nodes: bool = False,
        attention: bool | str = False,
        top: int | None = None,
    ) -> Classification | list[Classification]:
        """Answer a text, a pair or a tree, or each one of a list.

        Args:
            texts: a string; a pair as a tuple or as a dictionary of "text" and "pair"; to a model
                of trees a tree in brackets, as "(3 (2 A) (2 film))", where labels may be left out,
                or with `settings.tree_shape` a plain text; to a model of frames an array (length,
                features), or a tuple of its rows, which with `settings.rows` are dictionaries of
                values by column, or lists of them in order; or a list of these.
            truncate: cut inputs over the limit; of a pair, the longer text. A tree in brackets is
                never cut, and with a `stride` no text is.
            token_budget: the most tokens of a batch, padding among them.
            nodes: also return the classes of every node of a tree.
            attention: how much each token attends to each other, of a bundle that was exported with
                --attention-heads: True for the mean of the last layer's heads, "heads" for each
                head of each layer, "words" for weights of whole words. A text in windows has the
                first window's weights.
            top: how many labels an answer has scores of, the most probable ones; None: all. Also
                of several labels at once, and of every node of a tree.

        Returns:
            A `Classification`; for a list, a list of them, in its order.

        Raises:
            ValueError: if a text is refused; nothing is answered then.
            NoFiniteNumber: a BundleError, if the model gives NaN or infinity for an input.
        """
        if require_flag("Classify: nodes", nodes) and not self._reads_trees:
            raise ValueError("Classify: only trees have nodes; this model reads texts.")
        if top is not None:
            require_count("Classify: top", top)
            if not self._settings.labels:
                raise ValueError("Classify: top counts labels; this model predicts a number.")
        self._attention.require("Classify", attention)
        name = f"Classify: {self._reader.unit}"
        rows = encoded(texts, name, self.encode, truncate, token_budget, reader=self._reader)
        if self._settings.stride is None:
            answers = self._model.answer(
                rows,
                lambda index, logits: self._answer(rows[index], logits, nodes, top),
                token_budget,
            )
        else:
            of_texts = [row.rows for row in rows]
            answers = self._answers_of_windows(of_texts, token_budget, top)
            rows = [text[0] for text in of_texts]
        answers = self._attention.attach(answers, rows, attention, token_budget)
        return one_or_all(texts, answers, name)

    def encode(self, text: Any, name: str = "Classify: text", truncate: bool = False) -> Any:
        """Return the `Encoding` of a text or a pair, the `Windows` of a text if the settings have a
        stride, the `TreeRow` of a tree, or frames.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        return self._reader.read(text, name, truncate)

    @unwarned
    def _answers_of_windows(self, texts, token_budget, top):
        windows = [window for text in texts for window in text]
        logits = self._model.answer(windows, lambda _, text_logits: text_logits, token_budget)
        means = (np.mean(text_logits, axis=0) for text_logits in in_groups(logits, texts))
        return [Classification(*self._classes(mean, top)) for mean in means]

    def _answer(self, row, logits, with_nodes, top):
        if not self._reads_trees:
            return Classification(*self._classes(logits, top))
        nodes = row.written() if with_nodes else ()
        return Classification(
            *self._classes(logits[0], top),
            tuple(Node(text, *self._classes(logits[index], top)) for index, text in nodes),
        )

    def _answer_of_frame(self, logits, *_):
        return Classification(*self._classes(logits, None))

    def _classes(self, logits, top):
        """Return the labels, the score and the scores of a `Classification`."""
        settings = self._settings
        if not settings.labels:
            return (), float(logits[0]), {}
        if len(logits) < len(settings.labels):  # one logit for two: the first is 0
            logits = np.append(np.zeros_like(logits), logits)
        scores = (sigmoid if settings.multi_label else softmax)(logits).tolist()
        if any(map(math.isnan, scores)):  # which no order ranks
            return (), np.nan, {}
        labels, score, ranked = ranked_classes(settings.labels, scores)
        if settings.multi_label:
            labels = tuple(label for label, value in ranked.items() if value > settings.threshold)
        elif settings.none_of_these and scores[-1] > score:
            labels, score = (None,), scores[-1]
        return labels[:top], score, dict(itertools.islice(ranked.items(), top))


def ranked_classes(labels, scores):
    """Return the labels, the score and the scores of a `Classification` with one label."""
    ranked = dict(sorted(zip(labels, scores), key=lambda item: -item[1]))
    best = next(iter(ranked))
    return (best,), ranked[best], ranked

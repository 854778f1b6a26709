"""The attention of a model over its input tokens, in addition to its answers.

A bundle exported with --attention-heads has a separate graph for it, opened when attention is first
requested: answers without attention take no longer.
"""

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..checks import shown
from ..manifest import Manifest, verify_files
from ..opening import Runtime
from ..text.encoding import Encoding, of_words
from .batching import TOKEN_BUDGET
from .model import TOKENS, Model, Packing

ROLE = "attention"  # of the graph
MEAN, HEADS, WORDS = True, "heads", "words"


class AttentionGraph:
    """The attention of each head of each layer.

        attention(what the model reads) -> weights (B, L, N, T, S), of one name or several

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`; None for the default one.
        packing: the `Packing` of the pipeline's `Model`.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        runtime: Runtime | None,
        packing: Packing = TOKENS,
    ):
        self._folder, self._manifest, self._runtime = folder, manifest, runtime
        self._packing = packing
        self._graph = manifest.graphs.get(ROLE)
        self._names = [spec.name for spec in self._graph.outputs] if self._graph else []

    def require(self, who: str, attention: bool | str, words: bool = True) -> None:
        """Raise a ValueError unless the bundle has the requested attention.

        Args:
            who: the pipeline's name.
            attention: False; True for the mean of the last layer's heads; "heads" for each head of
                each layer; "words" for weights of words; or the name of an output, if the graph
                has several.
            words: whether "words" is allowed.

        Raises:
            ValueError: if it is none of these values, or the bundle does not have it.
        """
        if attention is False:
            return
        ways = [HEADS, *([WORDS] if words else ()), *(self._names if len(self._names) > 1 else ())]
        if attention is not True and not (isinstance(attention, str) and attention in ways):
            known = ", ".join(map(repr, ways)).replace("'", '"')
            raise ValueError(
                f"{who}: attention must be False, True or one of {known}; "
                f"received {shown(attention)}."
            )
        if not self._names:
            raise ValueError(
                f"{who}: attention must be False; this bundle was exported without "
                "--attention-heads: export its run again with it."
            )

    def attach(
        self,
        answers: Iterable,
        rows: Iterable,
        attention: bool | str,
        token_budget: int = TOKEN_BUDGET,
    ) -> list:
        """Return the answers to the rows, with their attention if requested."""
        if attention is False:
            return list(answers)
        attentions = self.of(list(rows), attention, token_budget)
        return [
            dataclasses.replace(answer, **fields)
            for answer, fields in zip(answers, attentions, strict=True)
        ]

    def of(
        self, rows: Sequence, attention: bool | str, token_budget: int = TOKEN_BUDGET
    ) -> list[dict[str, Any]]:
        """Return for each row the fields of its answer: `attention`, and the tokens of its axes.

        Args:
            rows: rows of the packing.
            attention: see `require`.
            token_budget: the most tokens of a batch, padding among them.
        """
        name = attention if attention in self._names else self._names[0]
        chosen = self._names.index(name)

        def read(index, *outputs):
            return self._fields(rows[index], outputs[chosen], name, attention)

        return self._model.answer(rows, read, token_budget)

    @functools.cached_property
    def _model(self):
        verify_files(self._folder, self._manifest, self._graph.files)
        return Model(
            self._folder, self._manifest, self._runtime, self._names, self._packing, role=ROLE
        )

    def _fields(self, row, weights, name, attention):
        """Return the fields of a row; weights (L, N, T, S), padded."""
        labels = self._packing.labels(row)
        of_axis = {
            spec.shape[1]: labels[spec.name] for spec in self._graph.inputs if spec.name in labels
        }
        [shape] = [spec.shape for spec in self._graph.outputs if spec.name == name]
        target, source = (
            _runs(of_axis.get(axis), size, attention)
            for axis, size in zip(shape[-2:], weights.shape[-2:])
        )
        weights = of_words(weights, *([count for _, count in runs] for runs in (target, source)))
        return {
            "attention": weights[-1].mean(axis=0) if attention is MEAN else weights,
            "source_tokens": tuple(token for token, _ in source),
            "target_tokens": tuple(token for token, _ in target),
        }


def _runs(labels, size, attention):
    """Return the labels of an axis, and how many positions each label covers.

    Args:
        labels: an `Encoding`, a list of strings, or None for queries that are not tokens.
        size: size of the axis, with padding.
        attention: in the form that `AttentionGraph.require` takes.
    """
    if isinstance(labels, Encoding):
        if attention == WORDS:
            return labels.words()
        labels = labels.tokens
    if labels is None:
        labels = [f"query {index}" for index in range(size)]
    return [(label, 1) for label in labels]

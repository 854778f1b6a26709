"""Real inputs of a SavedModel's signatures, without the batch's axis."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seqkeras.export.generation.searches import DRAWN
from seqkeras.export.pipelines import record_of
from seqkeras.serving.manifest import Manifest, SignatureSpec
from seqkeras.serving.session import FRAMES

LENGTH = 2  # of a symbolic axis in a made-up input
WORD_LENGTH = "word_length"  # the axis of a word's characters, which no input `lengths` describes


class Inputs:
    """The real inputs of a bundle, as its signatures take them."""

    def __init__(self, manifest: Manifest, examples: Sequence[Any]):
        self._texts, self._examples = manifest.examples, list(map(_with_length, examples))
        self.word_length = record_of(manifest.pipeline).word_length(manifest.settings)

    def of(self, signature: SignatureSpec) -> list[dict[str, np.ndarray]]:
        """Return the rows {name: array} of a `Signature`; a made-up row if there are none."""
        inputs = [spec for spec in signature.inputs if spec.name not in DRAWN]
        if any(spec.dtype == "string" for spec in inputs):
            rows = self._of_strings([spec.name for spec in inputs])
        else:
            rows = self._of_arrays(inputs) or [{spec.name: _made_up(spec) for spec in inputs}]
        drawn = {
            spec.name: np.asarray(DRAWN[spec.name][1], spec.dtype)
            for spec in signature.inputs
            if spec.name in DRAWN
        }
        return [row | drawn for row in rows]

    def shortest(self, signature: SignatureSpec) -> dict[str, np.ndarray]:
        """Return the shortest row."""
        return min(self.of(signature), key=size_of)

    def common(self, signature: SignatureSpec) -> list[dict[str, np.ndarray]]:
        """Return the rows of common lengths, the middle one first."""
        rows = sorted(self.of(signature), key=size_of)
        places = dict.fromkeys((len(rows) // 2, len(rows) // 4, 3 * len(rows) // 4))
        return [rows[index] for index in places]

    def _of_arrays(self, specs):
        rows = [
            {spec.name: np.asarray(row[spec.name], spec.dtype) for spec in specs}
            for row in self._examples
            if {spec.name for spec in specs} <= set(row)
        ]
        return [self._fitted(row, specs) for row in rows]

    def _of_strings(self, names):
        texts = [_strings(example, names) for example in self._texts]
        rows = [dict(zip(names, strings)) for strings in texts if len(strings) == len(names)]
        rows = rows or [dict.fromkeys(names, " ".join(strings)) for strings in texts[:1]]
        return [{name: np.array(text) for name, text in row.items()} for row in rows]

    def _fitted(self, row, specs):
        """Return a row cut to its lengths, with characters padded to `word_length`."""
        sizes = _own_sizes(row, specs)
        fitted = {}
        for spec in specs:
            value = row[spec.name]
            value = value[tuple(slice(sizes.get(axis)) for axis in spec.shape[1:])]
            if str(spec.shape[-1]).endswith(WORD_LENGTH):
                missing = max(0, self.word_length - value.shape[-1])
                value = np.pad(value, [*[(0, 0)] * (value.ndim - 1), (0, missing)])
            fitted[spec.name] = value
        return fitted


def _own_sizes(row, specs):
    """Return axis -> its size without padding, by `lengths` or the last id that is not 0."""
    axes = {axis for spec in specs for axis in spec.shape if isinstance(axis, str)}
    sizes = {}
    for spec in specs:
        if spec.name == "token_ids":
            places = np.nonzero(row[spec.name])[-1]
            sizes[spec.shape[-1]] = int(places.max(initial=0)) + 1
    for spec in specs:
        if spec.name.endswith("lengths"):
            length = spec.name.removesuffix("s")
            axis = length if length in axes else specs[0].shape[len(spec.shape)]
            sizes[axis] = int(row[spec.name].max())
    return {axis: size for axis, size in sizes.items() if axis in axes}


def size_of(row: Mapping[str, np.ndarray]) -> int:
    """Return the size of a row: code points of strings, numbers of arrays."""
    return sum(
        sum(map(len, value.flat)) if value.dtype.kind == "U" else value.size
        for value in row.values()
    )


def _strings(example, names):
    """Return the strings, and the lists of choices, of an input, in the order of the names."""
    if isinstance(example, str):
        return [example]
    values = example
    if isinstance(example, dict):
        values = [example[name] for name in names if name in example] or example.values()
    return [value for value in values if isinstance(value, str | list)]


def _with_length(example):
    """Return an example with the length of its tokens."""
    for name, rank in (("token_ids", 1), (FRAMES, 2)):
        if name in example and np.ndim(example[name]) == rank:
            return {"lengths": len(example[name]), **example}
    return example


def _made_up(spec):
    axes = [size if isinstance(size, int) else LENGTH for size in spec.shape[1:]]
    value = LENGTH if spec.name.endswith("lengths") else 1
    return np.full(axes, value, spec.dtype)

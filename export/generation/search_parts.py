"""The parts of a search before, after and at the end of its steps: `seqkeras.decoding`, traced."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from keras import ops

from seqkeras.decoding.loop import Loop
from seqkeras.export.generation.prompts import begun, behind_first, with_first
from seqkeras.export.generation.searches import best_of, result_specs, search_of
from seqkeras.export.onnx_graphs import convert
from seqkeras.serving.manifest import TensorSpec

if TYPE_CHECKING:
    from seqkeras.decoding import Constraint
    from seqkeras.export.graph import Graph
    from seqkeras.export.signatures import Signature
    from seqkeras.serving.manifest import DecodingDefaults

LENGTHS = TensorSpec("lengths", "int64", ("batch",))
PROMPT = (TensorSpec("token_ids", "int64", ("batch", "length")), LENGTHS)


class SearchParts:
    """The parts of a search around its steps, as functions of tensors.

    A prompt is an input that no step changes; its first token takes the place of `<bos>`.
    """

    def __init__(
        self,
        decoding: DecodingDefaults,
        max_length: int,
        step: Signature,
        constraint: Constraint | None = None,
        prompted: bool = False,
    ):
        self.prompt = PROMPT if prompted else ()
        self.decoding, self.constraint = decoding, constraint
        self.max_length = max_length - prompted  # of the search's own tokens
        [logits] = [spec for spec in step.outputs if spec.name == "logits"]
        self.vocab_size: Any = logits.shape[-1]
        self.beams = decoding.num_beams
        self.search = search_of(decoding, self.max_length)
        rows = ("batch", self.beams)
        self.length = TensorSpec("length", "int32", ())
        self.tokens = TensorSpec("tokens", "int32", (*rows, self.max_length))
        self.last = [TensorSpec(name, "int64", rows) for name in ("last", "beam_index")]
        self.found = [
            TensorSpec(f"found_{name}", array.dtype.name, ("batch", *array.shape[1:]))
            for name, array in self._loop().begin_search(1).items()
        ]

    def convert(self, portable: bool) -> dict[str, Graph]:
        """Return the parts as `seqkeras.export.graph.Graph`s, by name."""
        logits = TensorSpec("logits", "float32", ("batch", self.beams, self.vocab_size))
        carried = [self.length, self.tokens, *self.last, *self.found]
        common = [
            TensorSpec("common", "int64", ("batch", 1, "common_length")),
            TensorSpec("rows", "int64", ("batch", 1)),
        ]
        specs: dict[str, Any] = {
            "begin": (
                self._begin,
                self.prompt or [LENGTHS],
                [self.length, self.tokens, *self.found, *common] if self.prompt else carried,
            ),
            "advance": (
                self._advance,
                [logits, self.length, self.tokens, *self.found, *self.prompt],
                [
                    *(dataclasses.replace(spec, name=f"next_{spec.name}") for spec in carried),
                    TensorSpec("going", "bool", ()),
                ],
            ),
            "results": (
                self._results,
                [self.tokens, *self.found, *self.prompt],
                result_specs(self.max_length + len(self.prompt[:1])),
            ),
        }
        return {
            name: convert(function, inputs, outputs, name, portable)
            for name, (function, inputs, outputs) in specs.items()
        }

    def _loop(self, prompt=()):
        rest = behind_first(*prompt) if prompt else None
        return Loop(self.search, self.max_length, prompt=rest, constraint=self.constraint)

    def _begin(self, lengths, token_ids=None):
        batch_size = ops.shape(lengths)[0]
        rows = ops.arange(batch_size, dtype="int64")[:, None]  # one beam each at this point
        if token_ids is None:
            begin = self._loop().begin(batch_size, self.decoding.start_id, {})
            length, last, tokens, _, progress = begin
            last = ops.cast(last, "int64")
            named = {"last": last, "beam_index": rows + 0 * last}
        else:
            common, length, tokens = begun(token_ids, lengths, self.beams, self.max_length)
            progress = self._loop([token_ids, lengths]).begin_search(batch_size)
            named = {"common": common, "rows": rows}
        return named | {"length": length, "tokens": tokens, **_named(progress)}

    def _advance(self, logits, length, tokens, **others):
        loop = self._loop([others.pop(spec.name) for spec in self.prompt])
        beams = ops.arange(self.beams, dtype="int32") + ops.zeros_like(tokens[:, :, 0])
        length, last, tokens, state, progress = loop.advance(
            logits, [], length, tokens, {"beams": beams}, _found(others)
        )
        rows = self.beams * ops.arange(ops.shape(tokens)[0], dtype="int64")[:, None]
        after = {
            "length": length,
            "tokens": tokens,
            "last": ops.cast(last, "int64"),
            "beam_index": rows + ops.cast(state["beams"], "int64"),
            **_named(progress),
        }
        going = loop.unfinished(length, last, tokens, state, progress)
        return {f"next_{name}": tensor for name, tensor in after.items()} | {"going": going}

    def _results(self, tokens, **tensors):
        prompt = [tensors.pop(spec.name) for spec in self.prompt]
        results = best_of(self.search.results(tokens, _found(tensors)))
        return with_first(*prompt, results) if prompt else results


def _named(progress):
    return {f"found_{name}": tensor for name, tensor in progress.items()}


def _found(named):
    return {name.removeprefix("found_"): tensor for name, tensor in named.items()}

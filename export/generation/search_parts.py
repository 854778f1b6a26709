"""The parts of a search before, after and at the end of its steps: `seqkeras.decoding`, traced."""

import dataclasses

from keras import ops

from seqkeras.decoding.loop import Loop
from seqkeras.export.generation.prompts import begun, behind_first, with_first
from seqkeras.export.generation.searches import best_of, result_specs, search_of
from seqkeras.export.onnx_graphs import convert
from seqkeras.serving.manifest import TensorSpec


class SearchParts:
    """The parts of a search around its steps, as functions of tensors.

    No step changes the inputs `prompt`; the first part's outputs are `begun`.
    """

    prompt = ()

    def __init__(self, decoding, max_length, step, constraint=None):
        self.decoding, self.max_length, self.constraint = decoding, max_length, constraint
        [logits] = [spec for spec in step.outputs if spec.name == "logits"]
        self.vocab_size = logits.shape[-1]
        self.beams = decoding.num_beams
        self.search = search_of(decoding, max_length)
        self.found = [
            TensorSpec(f"found_{name}", array.dtype.name, ("batch", *array.shape[1:]))
            for name, array in self._loop().begin_search(1).items()
        ]
        rows = ("batch", self.beams)
        self.tokens = TensorSpec("tokens", "int32", (*rows, max_length))
        self.length = TensorSpec("length", "int32", ())
        self.carried = self.begun = [
            self.length,
            self.tokens,
            TensorSpec("last", "int64", rows),
            TensorSpec("beam_index", "int64", rows),
            *self.found,
        ]

    def convert(self, portable):
        """Return the parts as `seqkeras.export.graph.Graph`s, by name."""
        lengths = TensorSpec("lengths", "int64", ("batch",))
        logits = TensorSpec("logits", "float32", ("batch", self.beams, self.vocab_size))
        after = [dataclasses.replace(spec, name=f"next_{spec.name}") for spec in self.carried]
        specs = {
            "begin": (self._begin, self.prompt or [lengths], self.begun),
            "advance": (
                self._advance,
                [logits, self.length, self.tokens, *self.found, *self.prompt],
                [*after, TensorSpec("going", "bool", ())],
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

    def _loop(self, prompt=None):
        return Loop(self.search, self.max_length, prompt=prompt, constraint=self.constraint)

    def _begin(self, lengths):
        loop = self._loop()
        batch_size = ops.shape(lengths)[0]
        length, last, tokens, _, found = loop.begin(batch_size, self.decoding.start_id, {})
        rows = ops.arange(batch_size, dtype="int64")[:, None]  # one beam each at this point
        return self._named(length, last, tokens, rows + 0 * ops.cast(last, "int64"), found)

    def _advance(self, logits, length, tokens, **others):
        prompt = [others.pop(spec.name) for spec in self.prompt]
        loop = self._loop(self._rest(*prompt))
        beams = ops.arange(self.beams, dtype="int32") + ops.zeros_like(tokens[:, :, 0])
        length, last, tokens, state, found = loop.advance(
            logits, [], length, tokens, {"beams": beams}, _found(others)
        )
        rows = self.beams * ops.arange(ops.shape(tokens)[0], dtype="int64")[:, None]
        beam_index = rows + ops.cast(state["beams"], "int64")
        going = loop.unfinished(length, last, tokens, state, found)
        after = self._named(length, last, tokens, beam_index, found)
        return {f"next_{name}": tensor for name, tensor in after.items()} | {"going": going}

    def _rest(self):
        """Return the prompt of the loop."""
        return None

    def _named(self, length, last, tokens, beam_index, found):
        named = {"length": length, "tokens": tokens, "last": ops.cast(last, "int64")}
        named["beam_index"] = beam_index
        return named | {f"found_{name}": tensor for name, tensor in found.items()}

    def _results(self, tokens, **found):
        return best_of(self.search.results(tokens, _found(found)))


class PromptedSearchParts(SearchParts):
    """The parts of a search after prompts, whose first token takes the place of `<bos>`."""

    prompt = (
        TensorSpec("token_ids", "int64", ("batch", "length")),
        TensorSpec("lengths", "int64", ("batch",)),
    )

    def __init__(self, decoding, max_length, step, constraint=None):
        super().__init__(decoding, max_length - 1, step, constraint)
        self.begun = [
            self.length,
            self.tokens,
            *self.found,
            TensorSpec("common", "int64", ("batch", 1, "common_length")),
            TensorSpec("rows", "int64", ("batch", 1)),
        ]

    def _begin(self, token_ids, lengths):
        common, length, tokens = begun(token_ids, lengths, self.beams, self.max_length)
        named = {
            "length": length,
            "tokens": tokens,
            "common": common,
            "rows": ops.arange(ops.shape(token_ids)[0], dtype="int64")[:, None],
        }
        found = self._loop(self._rest(token_ids, lengths)).begin_search(ops.shape(token_ids)[0])
        return named | {f"found_{name}": tensor for name, tensor in found.items()}

    def _rest(self, token_ids, lengths):
        return behind_first(token_ids, lengths)

    def _results(self, tokens, token_ids, lengths, **found):
        return with_first(token_ids, lengths, super()._results(tokens, **found))


def _found(named):
    return {name.removeprefix("found_"): tensor for name, tensor in named.items()}

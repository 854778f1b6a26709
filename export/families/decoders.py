"""Models that answer token by token: a decoder step, and for encoder-decoders an encoder.

A graph's cache is not Keras's fixed buffer: it has shape (B K, N, P, H), where P is the number of
tokens so far, and a step returns it with its own tokens appended. The position is therefore the
length of the cache, not a state, unless the cache holds no more than the last tokens.

Where the model allows it there is a second graph of a step, "decoder_slots", whose caches are
buffers with room for later tokens, as Keras's: each row has a length of its own, and a runtime
writes in place (`seqkeras.export.slots`).
"""

from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from seqkeras.export.signatures import Signature
from seqkeras.models.never_generated import without
from seqkeras.serving.manifest import StateEntry, TensorSpec
from seqkeras.serving.session import FRAMES, STEP
from seqkeras.serving.slots import LENGTHS as SLOT_LENGTHS
from seqkeras.serving.slots import ROLE as SLOTS
from seqkeras.tensors import Tensor

SOURCE = (
    TensorSpec("token_ids", "int64", ("batch", "source_length")),
    TensorSpec("lengths", "int64", ("batch",)),
)
HEAD_SIZES = 8  # onnxruntime's operator takes multiples of it
CACHE_LENGTHS = ("cache_length", "window_length")
TEXT = TensorSpec("token_ids", "int64", ("batch", "length"))
PREFIX = TensorSpec("prefix_lengths", "int64", ("batch",))


def source_of(model: keras.Model) -> tuple[TensorSpec, ...]:
    """Return the encoder's inputs: token ids, or frames if the model has `source_features`."""
    features = getattr(model, "source_features", None)
    if features is None:
        return SOURCE
    frames = TensorSpec(FRAMES, "float32", ("batch", "source_length", features))
    return (frames, *SOURCE[1:])


def text_of(model: keras.Model) -> tuple[TensorSpec, ...]:
    """Return the inputs of a language model for a whole text."""
    return (TEXT, PREFIX) if reads_prefix(model) else (TEXT,)


def reads_prefix(model: keras.Model) -> bool:
    """Return whether a language model attends to its prompt in both directions."""
    return getattr(model, "reads_prefix", False)


def left_to_right(model: keras.Model, function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function of the dictionary that a language model takes into one of a text in order."""
    ordered = getattr(model, "from_left_to_right", dict)
    return lambda tensors: function(ordered(**tensors))


def encoder_decoder_graphs(
    model: keras.Model, attention_heads: bool = False
) -> dict[str, Signature]:
    """Return the graphs of an encoder-decoder by role: "encoder", "decoder_step", and perhaps
    "decoder_slots".

    The encoder returns the state before the first step, with one beam, without the caches, which
    start empty. With `attention_heads` a step returns the weights of all heads of all layers; a
    ValueError says that the model does not attend to a source.
    """
    if attention_heads and not getattr(model, "attends", False):
        raise ValueError(
            f"a {type(model).__name__} has no decoder that attends to a source; leave out "
            "--attention-heads."
        )
    state = _State(model)

    source = source_of(model)

    def encoder(**tensors):
        entries = model.encode(*(tensors[spec.name] for spec in source))
        return {spec.name: entries[spec.name] for spec in outputs}

    outputs = [*state.beam_specs("batch", 1), *state.source_specs]
    steps = _steps(model, state, model.target_vocab_size, attention_heads=attention_heads)
    return {"encoder": Signature(encoder, source, outputs), **steps}


def language_model_graphs(model: keras.Model) -> dict[str, Signature]:
    """Return the graph of a language model, "decoder_step", which takes one token or several, and
    perhaps "decoder_slots"."""
    return _steps(model, _State(model), model.vocab_size, several=True)


def log_probs_along(model: keras.Model, inputs: Mapping[str, Tensor]) -> Tensor:
    """Return (B, T, V) log-probabilities at each target token, of what can be generated."""
    return ops.log_softmax(without(model(inputs), getattr(model, "never_generated", ())))


def state_entries(model: keras.Model) -> tuple[StateEntry, ...]:
    """Return the manifest's `StateEntry`s of a model's state."""
    return tuple(StateEntry(entry.name, entry.per) for entry in _State(model).entries)


class _State:
    """The state of a model as inputs and outputs of a graph."""

    def __init__(self, model: keras.Model):
        self.caches = [e for e in model.state_entries if {*CACHE_LENGTHS} & {*e.shape}]
        # A position is the length of the caches, if they hold all tokens.
        self.counts = any("cache_length" in e.shape for e in self.caches)
        left_out = ["position"] if self.counts else []
        self.entries = [e for e in model.state_entries if e.name not in left_out]
        self.beams = [e for e in self.entries if e.per == "beam" and e not in self.caches]
        self.source_specs = [
            TensorSpec(e.name, e.dtype, ("batch", *e.shape))
            for e in self.entries
            if e.per == "source"
        ]

    @property
    def fits_slots(self):
        """Whether all of the state are caches that fill up, with heads that the operator takes."""
        return (
            self.counts
            and not self.beams
            and all(
                "cache_length" in e.shape and e.shape[-1] % HEAD_SIZES == 0 for e in self.caches
            )
        )

    def beam_specs(self, *leading, prefix=""):
        return [TensorSpec(prefix + e.name, e.dtype, (*leading, *e.shape)) for e in self.beams]

    def cache_specs(self, rows, length, prefix=""):
        return [
            TensorSpec(
                prefix + e.name,
                e.dtype,
                (rows, *(length if size in CACHE_LENGTHS else size for size in e.shape)),
            )
            for e in self.caches
        ]

    def reordered(self, state, beam_index):
        """Return the state of the surviving beams, in the model's shapes."""
        state = dict(state)
        for entry in self.beams:  # (B', K', ...) -> (B, K, ...)
            rows = ops.reshape(state[entry.name], (-1, *entry.shape))
            state[entry.name] = ops.take(rows, beam_index, axis=0)
        rows = ops.reshape(beam_index, (-1,))
        for entry in self.caches:  # (B' K', N, P, H) -> (B K, N, P, H)
            state[entry.name] = ops.take(state[entry.name], rows, axis=0)
        if self.counts:
            length = ops.shape(state[self.caches[0].name])[-2]
            state["position"] = ops.cast(ops.zeros_like(beam_index), "int32") + length
        return state


def _steps(model, state, vocab_size, several=False, attention_heads=False):
    """Return the graphs of a step by role.

    Inputs of "decoder_step": the last token of each beam (with `several`: several tokens);
    `beam_index`, the row of the flattened previous per-beam state that each beam continues, so that
    one gather reorders, widens and drops beams; `k`; and the state. Outputs: the k best candidates
    of each beam; attention weights if the model attends, with `attention_heads` also those of each
    head of each layer; and the new per-beam state.

    "decoder_slots" has in place of `beam_index` the number of tokens in each row of the caches.
    """
    attends = getattr(model, "attends", False)
    weights_shape = ("batch", "beam", "source_length")
    weights_specs = [TensorSpec("attention_weights", "float32", weights_shape)] if attends else []
    advance = model.read_beams if several else model.step
    heads_specs = []
    if attention_heads:
        shape = ("batch", "beam", *model.attention_heads, "source_length")
        heads_specs = [TensorSpec("attention_heads", "float32", shape)]
        advance = _with_their_mean(model.step_by_heads)

    def outputs(token_ids, k, entries):
        (logits, *weights), after = advance(token_ids, entries)
        log_probs, ids = tf.math.top_k(ops.log_softmax(logits), ops.cast(k, "int32"))
        return {
            "candidate_log_probs": log_probs,
            "candidate_ids": ops.cast(ids, "int64"),
            "logits": logits,
            **{
                spec.name: array
                for spec, array in zip(weights_specs + heads_specs, weights, strict=True)
            },
            **{f"next_{entry.name}": after[entry.name] for entry in [*state.beams, *state.caches]},
        }

    def decoder_step(token_ids, beam_index, k, **entries):
        return outputs(token_ids, k, state.reordered(entries, beam_index))

    def decoder_slots(token_ids, k, **entries):
        lengths = ops.reshape(entries.pop(SLOT_LENGTHS), ops.shape(token_ids)[:2])
        return outputs(token_ids, k, entries | {"position": ops.cast(lengths, "int32")})

    tokens = ("batch", "beam", "length") if several else ("batch", "beam")
    given = [TensorSpec("token_ids", "int64", tokens), TensorSpec("k", "int64", ())]
    results = [
        TensorSpec("candidate_log_probs", "float32", ("batch", "beam", "k")),
        TensorSpec("candidate_ids", "int64", ("batch", "beam", "k")),
        TensorSpec("logits", "float32", ("batch", "beam", vocab_size)),
        *weights_specs,
        *heads_specs,
    ]
    graphs = {
        STEP: Signature(
            decoder_step,
            [
                given[0],
                TensorSpec("beam_index", "int64", ("batch", "beam")),
                given[1],
                *state.beam_specs("previous_batch", "previous_beam"),
                *state.cache_specs("previous_rows", "past_length"),
                *state.source_specs,
            ],
            [
                *results,
                *state.beam_specs("batch", "beam", prefix="next_"),
                *state.cache_specs("rows", "total_length", prefix="next_"),
            ],
        )
    }
    if state.fits_slots:
        graphs[SLOTS] = Signature(
            decoder_slots,
            [
                *given,
                TensorSpec(SLOT_LENGTHS, "int64", ("rows",)),
                *state.cache_specs("rows", "capacity"),
                *state.source_specs,
            ],
            [*results, *state.cache_specs("rows", "capacity", prefix="next_")],
        )
    return graphs


def _with_their_mean(step):
    """Return a step that returns the mean of the last layer's heads before all heads."""

    def advance(token_ids, state):
        (logits, heads), state = step(token_ids, state)
        return (logits, ops.mean(heads[:, :, -1], axis=2), heads), state

    return advance

"""Per task the functions that leave as graphs, with the names, dtypes and shapes they promise."""

import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf
from keras import ops

from seqkeras.decoding import greedy
from seqkeras.tokenizers import BOS, EOS
from serving.manifest import TensorSpec

SOURCE = (
    TensorSpec("token_ids", "int64", ("batch", "source_length")),
    TensorSpec("lengths", "int64", ("batch",)),
)


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function of tensors by keyword that returns a dictionary of tensors."""

    function: Callable
    inputs: Sequence[TensorSpec]
    outputs: Sequence[TensorSpec]


def tensorflow_specs(specs):
    """`TensorSpec`s as TensorFlow writes them; a symbolic size is None there."""
    return [
        tf.TensorSpec(
            [size if isinstance(size, int) else None for size in spec.shape], spec.dtype, spec.name
        )
        for spec in specs
    ]


def seq2seq_graphs(model):
    """The ONNX graphs of an encoder-decoder by role: "encoder" and "decoder_step".

    The encoder returns the decoder's initial state with one beam. A decoder step takes the last
    token of every beam, `beam_index` (which row of the previous per-beam state, flattened, each
    beam continues: reordering, widening and dropping are one gather), `k` and the state; it
    returns the k best candidates of every beam, attention weights if the model attends, and the
    new per-beam state.
    """
    beam_entries = [entry for entry in model.state_entries if entry.per == "beam"]
    source_specs = [
        TensorSpec(entry.name, entry.dtype, ("batch", *entry.shape))
        for entry in model.state_entries
        if entry.per == "source"
    ]
    weights_shape = ("batch", "beam", "source_length")
    weights_specs = (
        [TensorSpec("attention_weights", "float32", weights_shape)] if model.attends else []
    )

    def beam_specs(*leading, prefix=""):
        return [
            TensorSpec(prefix + entry.name, entry.dtype, (*leading, *entry.shape))
            for entry in beam_entries
        ]

    def decoder_step(token_ids, beam_index, k, **state):
        for entry in beam_entries:  # (B', K', ...) -> (B, K, ...)
            rows = ops.reshape(state[entry.name], (-1, *entry.shape))
            state[entry.name] = ops.take(rows, beam_index, axis=0)
        (logits, *weights), state = model.step(token_ids, state)
        log_probs, ids = tf.math.top_k(ops.log_softmax(logits), ops.cast(k, "int32"))
        return {
            "candidate_log_probs": log_probs,
            "candidate_ids": ops.cast(ids, "int64"),
            "logits": logits,
            **{spec.name: each for spec, each in zip(weights_specs, weights, strict=True)},
            **{f"next_{entry.name}": state[entry.name] for entry in beam_entries},
        }

    return {
        "encoder": Signature(model.encode, SOURCE, [*beam_specs("batch", 1), *source_specs]),
        "decoder_step": Signature(
            decoder_step,
            [
                TensorSpec("token_ids", "int64", ("batch", "beam")),
                TensorSpec("beam_index", "int64", ("batch", "beam")),
                TensorSpec("k", "int64", ()),
                *beam_specs("previous_batch", "previous_beam"),
                *source_specs,
            ],
            [
                TensorSpec("candidate_log_probs", "float32", ("batch", "beam", "k")),
                TensorSpec("candidate_ids", "int64", ("batch", "beam", "k")),
                TensorSpec("logits", "float32", ("batch", "beam", model.target_vocab_size)),
                *weights_specs,
                *beam_specs("batch", "beam", prefix="next_"),
            ],
        ),
    }


def seq2seq_saved_model(model, max_length):
    """The SavedModel signatures of an encoder-decoder, on token ids.

    `serving_default` scores a target (teacher forcing), `generate` decodes greedily in the graph.
    """

    vocab_size = model.sizes["source_vocab_size"]

    def checked(token_ids, lengths):
        longest = tf.shape(token_ids, tf.int64)[1]
        checks = [
            tf.debugging.Assert(
                tf.reduce_all((lengths >= 1) & (lengths <= longest)),
                ["lengths: each must be from 1 to the length of token_ids."],
            ),
            tf.debugging.Assert(
                tf.reduce_all((token_ids >= 0) & (token_ids < vocab_size)),
                [f"token_ids: each must be from 0 to {vocab_size - 1}."],
            ),
        ]
        with tf.control_dependencies(checks):
            return tf.identity(token_ids), tf.identity(lengths)

    def score(token_ids, lengths, target_ids):
        token_ids, lengths = checked(token_ids, lengths)
        inputs = {"token_ids": token_ids, "lengths": lengths, "target_ids": target_ids}
        return {"log_probs": ops.log_softmax(model(inputs))}

    def generate(token_ids, lengths):
        token_ids, lengths = checked(token_ids, lengths)
        state = model.encode(token_ids, lengths)
        ids, lengths, scores = greedy(
            model.step, state, start_id=BOS, end_id=EOS, max_length=max_length
        )
        return {"generated_ids": ids, "generated_lengths": lengths, "scores": scores}

    return {
        "serving_default": Signature(
            score,
            [*SOURCE, TensorSpec("target_ids", "int64", ("batch", "target_length"))],
            [
                TensorSpec(
                    "log_probs",
                    "float32",
                    ("batch", "target_length", model.target_vocab_size),
                )
            ],
        ),
        "generate": Signature(
            generate,
            SOURCE,
            [
                TensorSpec("generated_ids", "int32", ("batch", max_length)),
                TensorSpec("generated_lengths", "int32", ("batch",)),
                TensorSpec("scores", "float32", ("batch",)),
            ],
        ),
    }

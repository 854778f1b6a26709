"""The signatures of a SavedModel on token ids, by the way a model answers."""

import tensorflow as tf
from keras import ops

from export.families.decoders import SOURCE
from export.signatures import Signature
from seqkeras.decoding import beam, greedy
from seqkeras.embeddings import LearnedPositions
from serving.manifest import DecodingDefaults, TensorSpec


def encoder_decoder(model, max_length, decoding=None):
    """`serving_default` scores a target (teacher forcing), `generate` decodes greedily.

    Where the default is more than one beam, `generate_beam` follows so many.

    Args:
        model: the encoder-decoder.
        max_length: the most tokens that `generate` makes.
        decoding: the manifest's `DecodingDefaults`.
    """
    decoding = decoding or DecodingDefaults()

    def score(token_ids, lengths, target_ids):
        inputs = {"token_ids": token_ids, "lengths": lengths, "target_ids": target_ids}
        return {"log_probs": ops.log_softmax(model(_checked(model, inputs)))}

    def generate(token_ids, lengths):
        inputs = _checked(model, {"token_ids": token_ids, "lengths": lengths})
        ids, lengths, scores = greedy(
            model.step,
            model.encode(**inputs),
            start_id=decoding.start_id,
            end_id=decoding.end_id,
            max_length=max_length,
        )
        return {"generated_ids": ids, "generated_lengths": lengths, "scores": scores}

    def generate_beam(token_ids, lengths):
        inputs = _checked(model, {"token_ids": token_ids, "lengths": lengths})
        ids, lengths, scores = beam(
            model.step,
            model.encode(**inputs),
            start_id=decoding.start_id,
            end_id=decoding.end_id,
            max_length=max_length,
            num_beams=decoding.beam_size,
            length_penalty=decoding.length_penalty,
        )
        best = {"generated_ids": ids, "generated_lengths": lengths, "scores": scores}
        return {name: each[:, 0] for name, each in best.items()}

    vocab_size = model.target_vocab_size
    log_probs = TensorSpec("log_probs", "float32", ("batch", "target_length", vocab_size))
    target_ids = TensorSpec("target_ids", "int64", ("batch", "target_length"))
    signatures = {
        "serving_default": Signature(score, [*SOURCE, target_ids], [log_probs]),
        "generate": Signature(generate, SOURCE, _generated(max_length)),
    }
    if decoding.beam_size > 1:
        signatures["generate_beam"] = Signature(generate_beam, SOURCE, _generated(max_length))
    return signatures


def language_model(model, max_length, decoding=None):
    """`serving_default` scores a text, `generate` goes on from a prompt.

    Args:
        model: the language model.
        max_length: the most tokens of a prompt and what `generate` makes, together.
        decoding: the manifest's `DecodingDefaults`.
    """
    decoding = decoding or DecodingDefaults()
    tokens = (
        TensorSpec("token_ids", "int64", ("batch", "length")),
        TensorSpec("lengths", "int64", ("batch",)),
    )

    def score(token_ids):
        inputs = _checked(model, {"token_ids": token_ids})
        return {"log_probs": ops.log_softmax(model(inputs))}

    def generate(token_ids, lengths):
        inputs = _checked(model, {"token_ids": token_ids, "lengths": lengths})
        token_ids, lengths = inputs["token_ids"], inputs["lengths"]
        # The prompt's first token takes the place of <bos>: what follows it is the prompt's rest.
        ids, lengths, scores = greedy(
            model.step,
            model.initial_state(tf.shape(token_ids)[0]),
            start_id=token_ids[:, 0],
            end_id=decoding.end_id,
            max_length=max_length - 1,
            prompt=(token_ids[:, 1:], lengths - 1),
        )
        first = tf.cast(token_ids[:, :1], ids.dtype)
        return {
            "generated_ids": tf.concat([first, ids], axis=1),
            "generated_lengths": lengths + 1,
            "scores": scores,
        }

    log_probs = TensorSpec("log_probs", "float32", ("batch", "length", model.vocab_size))
    return {
        "serving_default": Signature(score, tokens[:1], [log_probs]),
        "generate": Signature(generate, tokens, _generated(max_length)),
    }


def single(model, graphs):
    """The signatures of the ONNX graphs, "model" being `serving_default`."""

    def checked(function):
        return lambda **tensors: function(**_checked(model, tensors))

    return {
        "serving_default" if role == "model" else role: Signature(
            checked(each.function), each.inputs, each.outputs
        )
        for role, each in graphs.items()
    }


def _generated(max_length):
    return [
        TensorSpec("generated_ids", "int32", ("batch", max_length)),
        TensorSpec("generated_lengths", "int32", ("batch",)),
        TensorSpec("scores", "float32", ("batch",)),
    ]


def _checked(model, inputs):
    """The inputs, behind assertions that ids are in their vocabularies and lengths fit."""
    checks = []
    for name, (_, size) in getattr(model, "id_limits", {}).items():
        if name in inputs:
            ids = inputs[name]
            message = f"{name}: each must be from 0 to {size - 1}."
            checks.append(tf.debugging.Assert(tf.reduce_all((ids >= 0) & (ids < size)), [message]))
    most = _most_tokens(model)
    for name in ("token_ids", "target_ids"):
        if most is not None and name in inputs:
            fit = tf.shape(inputs[name])[-1] <= most
            checks.append(tf.debugging.Assert(fit, [f"{name}: at most {most} in a row."]))
    if "lengths" in inputs and "token_ids" in inputs:
        lengths = inputs["lengths"]
        longest = tf.shape(inputs["token_ids"], tf.int64)[-1]
        fit = tf.reduce_all((lengths >= 1) & (lengths <= longest))
        message = "lengths: each must be from 1 to the length of token_ids."
        checks.append(tf.debugging.Assert(fit, [message]))
    with tf.control_dependencies(checks):
        return {name: tf.identity(each) for name, each in inputs.items()}


def _most_tokens(model):
    """How many positions a model, or the encoder below its heads, has vectors for, or None."""
    for each in (model, getattr(model, "encoder", None)):
        positions = getattr(each, "positions", None)
        if isinstance(positions, LearnedPositions):
            return positions.max_length
    return None

"""The signatures of a SavedModel on token ids, by the way a model answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import tensorflow as tf
from keras import ops

from seqkeras.decoding.loop import Loop, begun
from seqkeras.export.families.decoders import left_to_right, log_probs_along, source_of, text_of
from seqkeras.export.generation import searches, shrinking_batch
from seqkeras.export.generation.prompts import room_of, search_behind, with_first
from seqkeras.export.signatures import Signature
from seqkeras.models.limits import most_tokens
from seqkeras.serving.manifest import TensorSpec
from seqkeras.serving.pipelines.forecast import WINDOW
from seqkeras.serving.session import FRAMES

if TYPE_CHECKING:
    import keras

    from seqkeras.export.generation.searches import Generation
    from seqkeras.tensors import Tensor

_SEQUENCES = {"token_ids": -1, FRAMES: 1, WINDOW: 1}  # the axis of the length


def encoder_decoder(model: keras.Model, generation: Generation) -> dict[str, Signature]:
    """Return signatures: `serving_default` scores a target (teacher forcing), `generate` decodes
    greedily.

    If the default is more than one beam, `generate_beam` searches with that many; `n_best` and
    `sample` are there if the `Generation` asks for them.
    """
    source = source_of(model)
    scored = (*source, TensorSpec("target_ids", "int64", ("batch", "target_length")))

    def score(**inputs):
        return {"log_probs": log_probs_along(model, _checked(model, scored, inputs))}

    def generate(search, named, **arrays):
        checked = _checked(model, source, arrays)
        room = room_of(model, model.encode, generation.max_length)
        state = model.encode(*(checked[spec.name] for spec in source), **room)
        loop = Loop(search, generation.max_length, constraint=generation.constraint)
        begin = begun(model.step, state, loop, generation.decoding.start_id)
        return named(search.results(*shrinking_batch.run(model.step, loop, *begin)))

    vocab_size = model.target_vocab_size
    log_probs = TensorSpec("log_probs", "float32", ("batch", "target_length", vocab_size))
    return {
        "serving_default": Signature(score, scored, [log_probs]),
        **_generating(generate, source, generation),
    }


def language_model(model: keras.Model, generation: Generation) -> dict[str, Signature]:
    """Return signatures: `serving_default` scores a text, `generate` continues a prompt greedily.

    Further signatures: see `encoder_decoder`. The common length of a batch's prompts is
    read in one step. A model with mask "prefix" reads each prompt whole, and its `serving_default`
    takes the lengths of prefixes too.
    """
    tokens = (
        TensorSpec("token_ids", "int64", ("batch", "length")),
        TensorSpec("lengths", "int64", ("batch",)),
    )

    scored, scores = text_of(model), left_to_right(model, model)

    def score(**given):
        return {"log_probs": ops.log_softmax(scores(_checked(model, scored, given)))}

    def generate(search, named, token_ids, lengths):
        given = {"token_ids": token_ids, "lengths": lengths}
        room = generation.max_length - 1
        prompts = _checked(model, tokens, given, room)
        continued = search_behind(
            model, search, **prompts, max_length=room, constraint=generation.constraint
        )
        return with_first(**prompts, results=named(continued))

    log_probs = TensorSpec("log_probs", "float32", ("batch", "length", model.vocab_size))
    return {
        "serving_default": Signature(score, scored, [log_probs]),
        **_generating(generate, tokens, generation, 1),
    }


def by_default(signatures: Mapping[str, Signature]) -> str:
    """Return the signature that generates with the same defaults as `serving`."""
    return "generate_beam" if "generate_beam" in signatures else "generate"


def _generating(generate, inputs, generation, first=0):
    """Return the signatures that generate: `generate` with one beam, `generate_beam` with more if
    those are the default, and others.

    Args:
        generate: takes a `seqkeras.decoding.Search`, `best_of` or `all_of`, and the inputs by name.
        first: how many tokens of a result no search adds.
    """
    decoding, max_length = generation.decoding, generation.max_length
    results = searches.result_specs(max_length)

    def by(search, named=searches.best_of):
        return lambda **arrays: generate(search(max_length - first), named, **arrays)

    def as_decoding(decoding):
        return by(lambda length: searches.search_of(decoding, length))

    greedy = as_decoding(dataclasses.replace(decoding, num_beams=1))
    signatures = {"generate": Signature(greedy, inputs, results)}
    if decoding.num_beams > 1:
        signatures["generate_beam"] = Signature(as_decoding(decoding), inputs, results)
    if generation.n_best:
        specs = searches.result_specs(max_length, generation.n_best)
        several = by(generation.several, searches.all_of)
        signatures[searches.N_BEST] = Signature(several, inputs, specs)
    if generation.sampling:

        def sample(**arrays):
            drawn = {name: arrays.pop(name) for name in searches.DRAWN}
            drawn = required(drawn, searches.demands_of(**drawn))
            length = max_length - first
            search = searches.Sampled(**drawn, max_length=length, end_id=decoding.end_id)
            return generate(search, searches.best_of, **arrays)

        signatures[searches.SAMPLE] = Signature(sample, [*inputs, *searches.DRAWN_SPECS], results)
    return signatures


def single(model: keras.Model, graphs: Mapping[str, Signature]) -> dict[str, Signature]:
    """Return the signatures of the ONNX graphs, "model" being `serving_default`."""

    def checked(signature):
        return lambda **tensors: signature.function(**_checked(model, signature.inputs, tensors))

    return {
        "serving_default" if role == "model" else role: Signature(
            checked(signature), signature.inputs, signature.outputs
        )
        for role, signature in graphs.items()
    }


def _checked(model, specs, inputs, room=None):
    """Return inputs after assertions: sizes agree, ids are within their vocabularies, lengths fit.

    `room` is the most tokens of a prompt, so that something can follow; None for no prompts.
    """
    return required(inputs, [*_sizes(specs, inputs), *_ids(model, inputs), *_lengths(inputs, room)])


def required(
    inputs: Mapping[str, Tensor], demands: Sequence[tuple[Tensor, str]]
) -> dict[str, Tensor]:
    """Return the inputs by name after assertions: (condition, what it demands) of each."""
    checks = [tf.debugging.Assert(tf.reduce_all(holds), [demand]) for holds, demand in demands]
    with tf.control_dependencies(checks):
        return {name: tf.identity(tensor) for name, tensor in inputs.items()}


def _sizes(specs, inputs):
    """Yield conditions on the sizes of inputs, with their messages."""
    places = {}
    for spec in specs:
        for index, axis in enumerate(spec.shape):
            if isinstance(axis, str):
                places.setdefault(axis, []).append((spec.name, index))
    for axis, uses in places.items():
        first, *others = (tf.shape(inputs[name])[index] for name, index in uses)
        if others:
            names = ", ".join(dict.fromkeys(name for name, _ in uses))
            yield tf.stack(others) == first, f"{names}: must have the same size along {axis}."
        if uses[0] == (specs[0].name, 0):
            yield first > 0, f"{specs[0].name}: must have a row at least."


def _ids(model, inputs):
    """Yield conditions on ids; with an unknown vocabulary size, that no id is negative."""
    most = most_tokens(model)
    for name in ("target_ids", *_SEQUENCES):
        if most is not None and name in inputs:
            yield _length(name, inputs) <= most, f"{name}: at most {most} in a row."
    for name in _SEQUENCES:
        if name in inputs and inputs[name].shape.rank > 1:
            yield _length(name, inputs) > 0, f"{name}: must have a column at least."
    limits = {"token_ids": (None, None)} | getattr(model, "id_limits", {})
    for name, (_, size) in limits.items():
        if name in inputs and size is None:
            yield inputs[name] >= 0, f"{name}: each must be from 0 on."
        elif name in inputs:
            holds = (inputs[name] >= 0) & (inputs[name] < size)
            yield holds, f"{name}: each must be from 0 to {size - 1}."


def _length(name, inputs):
    return tf.shape(inputs[name])[_SEQUENCES.get(name, -1)]


def _lengths(inputs, room):
    """Yield conditions on lengths and on positions within them."""
    sequences = [name for name in _SEQUENCES if name in inputs]
    for name, least in (("lengths", 1), ("prefix_lengths", 1), ("masked_positions", 0)):
        if name in inputs and sequences:
            within = tf.cast(inputs[name], tf.int64) - least
            longest = tf.cast(_length(sequences[0], inputs), tf.int64)
            beyond = "" if least else " less one"
            demand = f"{name}: each must be from {least} to the length of {sequences[0]}{beyond}."
            yield (within >= 0) & (within < longest), demand
    if room is not None:
        demand = f"lengths: at most {room}, so that something can follow a prompt."
        yield inputs["lengths"] <= room, demand


def source_limits(model: keras.Model) -> dict[str, int | None]:
    """Return the limits of a source, `vocab_size` and `source_length`; None for no limit."""
    _, vocab_size = getattr(model, "id_limits", {}).get("token_ids", (None, None))
    return {"vocab_size": vocab_size, "source_length": most_tokens(model)}

"""Small pieces that layers and models share."""

import keras
import numpy as np
from keras import ops
from keras.src.backend.common import global_state
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

BANNED_LOGIT = -1e9  # the logit of a banned token, or of a padded position


def known_numbers(tensor):
    """Return a tensor's numbers as NumPy, or None while a graph is traced."""
    if isinstance(tensor, np.ndarray):
        return tensor  # not copied, because it may exceed the memory
    try:
        return ops.convert_to_numpy(tensor)
    except (NotImplementedError, TypeError, ValueError):  # errors of symbolic tensors
        return None


def is_symbol(length):
    """Return whether a length is a symbol of JAX, by which Keras asks for the shapes of outputs
    alone.

    It can not be compared with a number, as a length must that falls into blocks.
    """
    return in_symbolic_scope() and not isinstance(length, int) and not ops.is_tensor(length)


def build_once(layer, *shapes):
    """Build a layer unless it is built already, like one from a file."""
    if not layer.built:
        layer.build(*shapes)


def forget_variables_from_now():
    """Return a function that removes the variables made until then from those that wait for values.

    Keras keeps a list of all that were made in a scope without values, and gives them values at the
    end of any later `keras.StatelessScope`.
    """
    waiting = "uninitialized_variables"
    before = list(global_state.get_global_attribute(waiting, []))
    return lambda: global_state.set_global_attribute(waiting, before)


def config_of_part(part):
    """Return the config of a part, a layer or None; a layer made from it has no weights yet."""
    return _without_weights(keras.saving.serialize_keras_object(part))


def _without_weights(config):
    """Return a config without what building a layer, or the layers in it, adds to it."""
    if isinstance(config, dict):
        values = {name: value for name, value in config.items() if name != "build_config"}
        return {name: _without_weights(value) for name, value in values.items()}
    return [_without_weights(value) for value in config] if isinstance(config, list) else config


def normal_or_glorot(stddev):
    """Return the initializer of a kernel: normal with `stddev`, or for None Glorot uniform."""
    return "glorot_uniform" if stddev is None else keras.initializers.RandomNormal(stddev=stddev)


def scaling(mean, deviation):
    """Return a function: numbers (..., C) -> (number - mean) / deviation, in float32.

    Args:
        mean, deviation: (C,) numbers.
    """
    mean, deviation = np.array(mean, "float32"), np.array(deviation, "float32")
    return lambda numbers: (numbers - mean) / deviation


def without_padding(mask, *sequences):
    """Return the sequences, with zeros at their padding, which then may hold anything.

    A weight of zero does not keep a NaN out, nor out of a gradient: zero times NaN is NaN.

    Args:
        mask: (B or 1, S) booleans, True for what is real, or None.
        sequences: (B, S, ·) each.
    """
    if mask is None:
        return list(sequences)
    return [
        ops.where(mask[..., None], sequence, ops.zeros_like(sequence)) for sequence in sequences
    ]


def reversed_steps(sequences, lengths):
    """Return (B, S, D) sequences whose real steps are in reverse order; padding stays after them.

    Args:
        sequences: (B, S, D), padded on the right.
        lengths: (B,) integers, the real steps of each row.
    """
    steps = ops.arange(ops.shape(sequences)[1])[None]  # (1, S)
    lengths = ops.cast(lengths, steps.dtype)[:, None]
    places = ops.where(steps < lengths, lengths - 1 - steps, steps)
    return ops.take_along_axis(sequences, places[..., None], axis=1)

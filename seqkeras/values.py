"""Small pieces that layers and models share."""

import keras
import numpy as np
from keras import ops

BANNED_LOGIT = -1e9  # the logit of what may not be chosen: a token, or a position that is padding


def known_numbers(tensor):
    """A tensor's numbers as NumPy, or None while a graph is traced."""
    if isinstance(tensor, np.ndarray):
        return tensor  # not copied: it may be larger than the memory
    try:
        return ops.convert_to_numpy(tensor)
    except (NotImplementedError, TypeError, ValueError):  # as each backend's symbols say no
        return None


def build_once(layer, *shapes):
    """Build a layer unless it is built already, as one from a file is."""
    if not layer.built:
        layer.build(*shapes)


def config_of_part(part):
    """What a config holds for a part, a layer or None: made again, it has no weights yet."""
    return _without_weights(keras.saving.serialize_keras_object(part))


def _without_weights(config):
    """The same for a layer that is built and for one that is not, and for the layers in it."""
    if isinstance(config, dict):
        kept = {name: value for name, value in config.items() if name != "build_config"}
        return {name: _without_weights(value) for name, value in kept.items()}
    return [_without_weights(value) for value in config] if isinstance(config, list) else config


def normal_or_glorot(stddev):
    """What a kernel starts as: normal numbers, or with None Glorot's uniform ones."""
    return "glorot_uniform" if stddev is None else keras.initializers.RandomNormal(stddev=stddev)


def without_padding(mask, *sequences):
    """The sequences, with zeros at their padding, which then may hold anything.

    A weight of zero does not keep a NaN out, nor out of a gradient: zero times NaN is NaN.

    Args:
        mask: (B or 1, S) booleans, True for what is real, or None.
        sequences: (B, S, ·) each.
    """
    if mask is None:
        return list(sequences)
    return [ops.where(mask[..., None], each, ops.zeros_like(each)) for each in sequences]

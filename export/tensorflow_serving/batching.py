"""Batches that the server makes of several clients' requests.

The server pads shorter tensors with the first element of the request's own tensor. So a model is
batched only if this padding does not change its answers to real inputs.

Reference: https://github.com/tensorflow/serving (batching/batching_util.cc: PadTensor;
servables/tensorflow/bundle_factory_util.cc: batching_params.pbtxt)
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from seqkeras.serving.pipelines.forecast import WINDOW
from seqkeras.serving.session import FRAMES

OF_ONE_MODEL = "batching_params.pbtxt"
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
BATCHING = f"""max_batch_size {{ value: {BATCH_SIZES[-1]} }}
batch_timeout_micros {{ value: 2000 }}
max_enqueued_batches {{ value: 1024 }}
num_batch_threads {{ value: 4 }}
allowed_batch_sizes: {list(BATCH_SIZES)}
pad_variable_length_inputs: true
"""
TOLERANCE = 1e-3  # relative and absolute


def may_be_batched(loaded: Any, rows: Mapping[str, Any]) -> bool:
    """Return whether the server's padding does not change the answers to real inputs.

    Rows are signature -> inputs {name: array} without the batch's axis.
    """
    return all(_same_in_a_batch(loaded[key], inputs) for key, inputs in rows.items())


def have_lengths(signatures: Iterable[Any]) -> bool:
    """Return whether signatures of numbers or strings of any length tell how long each row is.

    Rows of numbers have `lengths`, and a row of strings is one of them, not a list of choices. If
    all real inputs have one length, trying them shows nothing about padding.
    """
    return all(
        spec.dtype != "string" and any(other.name == "lengths" for other in signature.inputs)
        for signature in signatures
        for spec in signature.inputs
        if (spec.dtype == "string" or spec.name in (FRAMES, WINDOW))
        and any(isinstance(axis, str) for axis in spec.shape[1:2])
    )


def padded(rows: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return inputs as a batch, as the server pads it."""
    batch = {}
    for name, first in rows[0].items():
        sizes = np.max([row[name].shape for row in rows], axis=0).astype(int)
        dtype = object if first.dtype.kind == "U" else first.dtype
        batch[name] = np.empty((len(rows), *sizes), dtype)
        for index, row in enumerate(rows):
            batch[name][index] = row[name].flat[0]
            batch[name][(index, *map(slice, row[name].shape))] = row[name]
    return batch


def _same_in_a_batch(function, rows):
    alone = [(row, _answers(function, padded([row]))) for row in rows]
    alone = [(row, expected) for row, expected in alone if expected is not None]
    together = _answers(function, padded([row for row, _ in alone])) if alone else {}
    return together is not None and all(
        _close(together[name][index], expected[name][0])
        for index, (_, expected) in enumerate(alone)
        for name in expected
    )


def _answers(function, inputs):
    """Return the outputs by name, or None if the inputs are refused."""
    try:
        outputs = function(**{name: tf.constant(value) for name, value in inputs.items()})
    except (tf.errors.InvalidArgumentError, ValueError):
        return None
    return {name: tensor.numpy() for name, tensor in outputs.items()}


def _close(actual, expected):
    """Return whether a row is the same up to its own sizes."""
    actual = actual[tuple(map(slice, expected.shape))]
    if expected.dtype.kind != "f":
        return np.array_equal(actual, expected)
    return np.allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE)

"""Requests that the server runs before it reports a model as available.

They are `PredictionLog`s in a TFRecord file. Their few fields are written here by number; the
package tensorflow-serving-api, which has classes for them, is not needed otherwise.

Reference: https://www.tensorflow.org/tfx/serving/saved_model_warmup;
https://github.com/tensorflow/serving (apis/prediction_log.proto, predict.proto, model.proto)
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from seqkeras.export.tensorflow_serving.batching import BATCH_SIZES

WARM_UP = "assets.extra/tf_serving_warmup_requests"
SECONDS = 1.0  # of warming up a model, not counting the first request of each signature


def write_requests(folder: Path, loaded: Any, name: str, rows: Mapping[str, Any]) -> int:
    """Write requests of each batch size and of common lengths in `SECONDS`; return their number.

    The server refuses a model if a warm-up request fails, so each row is tried, and left out if it
    fails, as is each batch size of a signature's first row, whose time counts for the others. Rows
    are those of `may_be_batched`, the most common first.
    """
    file = folder / WARM_UP
    file.parent.mkdir(parents=True, exist_ok=True)
    tried = {key: _that_run(loaded[key], examples) for key, examples in rows.items()}
    count, spent, last = 0, 0.0, {}
    with tf.io.TFRecordWriter(str(file)) as writer:
        for size, key, row, is_first in _requests(tried):
            if last.get(key) is not None and spent + 2 * last[key] > SECONDS:
                continue
            inputs = {name: np.repeat(value[np.newaxis], size, 0) for name, value in row.items()}
            if is_first:
                last[key] = _seconds(loaded[key], inputs)
            if last[key] is None:
                continue
            spent += last[key]
            writer.write(prediction_log(name, key, inputs))
            count += 1
    return count


def _that_run(function, examples):
    """Return the rows that a signature answers; the first of them compiles."""
    ones = ({name: value[np.newaxis] for name, value in row.items()} for row in examples)
    return [row for row, one in zip(examples, ones) if _seconds(function, one) is not None]


def _seconds(function, inputs):
    """Return how long a request takes, or None if it fails."""
    began = time.perf_counter()
    try:
        function(**{name: tf.constant(value) for name, value in inputs.items()})
    except (tf.errors.InvalidArgumentError, ValueError):
        return None
    return time.perf_counter() - began


def _requests(rows):
    """Yield (batch size, signature, row, whether it is the signature's first); every signature
    comes once before any comes again."""
    for size in BATCH_SIZES:
        for index in range(max(map(len, rows.values()))):
            for key, examples in rows.items():
                if index < len(examples):
                    yield size, key, examples[index], index == 0


def prediction_log(model: str, signature: str, inputs: Mapping[str, np.ndarray]) -> bytes:
    """Return the bytes of a `PredictionLog` of one request."""
    request = _field(1, _field(1, model.encode()) + _field(3, signature.encode()))
    for name, value in inputs.items():
        tensor = tf.make_tensor_proto(value).SerializeToString()
        request += _field(2, _field(1, name.encode()) + _field(2, tensor))
    return _field(6, _field(1, request))


def _field(number, content):
    """Return a field of bytes, as Protocol Buffers write it."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value):
    digits = []
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])

"""A random model streams as the whole model answers, or is refused."""

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras import recurrent
from seqkeras.attention import RestrictedSelfAttention, StructuredSelfAttention
from seqkeras.streams import StreamError, Streaming
from seqkeras.transformer import EncoderBlock, LayerNorm
from tests.arrays import floats, numbers
from tests.conftest import others_long
from tests.seqkeras.streams.test_streaming import CHUNKS, D, T, model_of, of_prefixes, streamed

WIDTH = 4  # of every hidden layer, for residuals
EACH = {
    "dense": lambda draw: keras.layers.Dense(WIDTH, draw(["relu", "tanh", None])),
    "norm": lambda draw: LayerNorm(),
    "norm of keras": lambda draw: keras.layers.LayerNormalization(),
    "batch norm": lambda draw: keras.layers.BatchNormalization(),
    "dropout": lambda draw: keras.layers.Dropout(0.5),
    "lstm": lambda draw: recurrent.LSTM(WIDTH, return_sequences=True),
    "gru": lambda draw: recurrent.GRU(WIDTH, return_sequences=True),
    "rnn": lambda draw: recurrent.SimpleRNN(WIDTH, return_sequences=True),
    "qrnn": lambda draw: recurrent.QRNN(WIDTH, window=draw([1, 2, 3]), return_sequences=True),
    "lstm of keras": lambda draw: keras.layers.LSTM(
        WIDTH, return_sequences=True, go_backwards=draw([False] * 5 + [True])
    ),
    "gru of keras": lambda draw: keras.layers.GRU(
        WIDTH, return_sequences=True, reset_after=draw([True, False])
    ),
    "convolution": lambda draw: keras.layers.Conv1D(
        WIDTH,
        draw([1, 2, 3, 5]),
        padding=draw(["causal", "same", "valid"]),
        dilation_rate=draw([1, 2]),
        activation=draw(["relu", None]),
    ),
    "attention": lambda draw: RestrictedSelfAttention(2, 2, draw([1, 3]), causal=True),
    "block": lambda draw: EncoderBlock(
        WIDTH,
        2,
        5,
        pre_norm=draw([True, False]),
        attention_window=draw([1, 3]),
        relative_clip=draw([None, 2]),
        causal=True,
    ),
    "cumsum": lambda draw: lambda x: ops.cumsum(x, axis=1) / 10,
    "shift": lambda draw: lambda x: ops.pad(x, [[0, 0], [1, 0], [0, 0]])[:, :-1],
}  # fmt: skip
AHEAD = {
    "strides": lambda draw: keras.layers.Conv1D(WIDTH, 2, padding="causal", strides=2),
    "both ways": lambda draw: recurrent.Bidirectional(recurrent.GRU(2, return_sequences=True)),
    "attention ahead": lambda draw: RestrictedSelfAttention(2, 2, 3),
    "block ahead": lambda draw: EncoderBlock(WIDTH, 2, 5, attention_window=1),
    "centred": lambda draw: lambda x: x - ops.mean(x, axis=1, keepdims=True),
    "softmax over time": lambda draw: lambda x: ops.softmax(x, axis=draw([1, -1])),
}  # fmt: skip
SUMMARIES = {
    "none": lambda x: x,
    "mean": lambda x: ops.mean(x, axis=1),
    "max": lambda x: ops.max(x, axis=1),
    "last": lambda x: x[:, -1],
    "pooled": lambda x: keras.layers.GlobalAveragePooling1D()(x),
    "structured": lambda x: StructuredSelfAttention(3, 2)(x)[0],
    "recurrent": lambda x: keras.layers.LSTM(3)(x),
    "mean and max": lambda x: ops.concatenate([ops.mean(x, axis=1), ops.max(x, axis=1)], axis=-1),
    "distance to the mean": lambda x: ops.mean(x, axis=1) - x[:, -1],
    "first": lambda x: x[:, 0],
    "variance": lambda x: ops.var(x, axis=1),
}


def random_model(seed):
    """Return a model of random layers, with residuals, and their names."""
    random = np.random.default_rng(seed)

    def draw(values):
        return values[random.integers(len(values))]

    names, layers = [], []
    if draw([True, False, False]):
        names, layers = ["masking"], [keras.layers.Masking()]
    layers.append(keras.layers.Dense(WIDTH))
    for _ in range(draw([1, 2, 3, 4])):
        name = draw([*(AHEAD if draw([False] * 9 + [True]) else EACH)])
        layer = (EACH | AHEAD)[name](draw)
        is_residual = draw([True, False]) and getattr(layer, "padding", None) != "valid"
        names.append(f"{name}{' + x' if is_residual else ''}")
        layers.append((lambda x, layer=layer: x + layer(x)) if is_residual else layer)
    name = draw([*SUMMARIES])
    return lambda: model_of(*layers, SUMMARIES[name], keras.layers.Dense(2)), [*names, name]


@pytest.mark.filterwarnings("ignore:Layer ")
@pytest.mark.parametrize("seed", others_long(range(12), short=6))
def test_it_streams_or_is_refused(seed):
    make, names = random_model(seed)
    model = make()
    frames = floats(2, T, D, seed=seed)
    if names[0] == "masking":
        frames[0, [0, 4, 5, 11]] = frames[1, 3] = 0
    try:
        streaming = Streaming(model)
    except StreamError as error:
        assert "\n" not in str(error)
        return
    [delay], [warm_up] = streaming.delays.values(), streaming.warm_ups.values()
    if delay is None:
        expected = np.stack(of_prefixes(model, frames, warm_up + 1), axis=1)
    else:
        assert delay == warm_up
        expected = numbers(model(frames))[:, : T - delay]
    for chunks in CHUNKS:
        actual = streamed(streaming, frames, chunks)[:, warm_up:]
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5, err_msg=names)

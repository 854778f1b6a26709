"""A stream gives what the whole model gives, after each frame, whatever the chunks are."""

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras import recurrent
from seqkeras.attention import DistanceBias, RestrictedSelfAttention, StructuredSelfAttention
from seqkeras.models import Forecaster
from seqkeras.streams import StreamError, Streaming
from seqkeras.streams.walk import canonical
from seqkeras.transformer import Encoder, EncoderBlock, LayerNorm
from tests.arrays import close, floats, numbers, randomize
from tests.conftest import others_long

B, T, D = 2, 13, 3
CHUNKS = [[T], [1] * T, [5, 1, 4, 3]]


def model_of(*layers):
    """Return a model of layers, one after the other, of random weights."""
    frames = keras.Input((None, D), name="frames")
    hidden = frames
    for layer in layers:
        hidden = layer(hidden)
    model = keras.Model(frames, hidden)
    randomize(model)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.moving_variance.assign(ops.abs(layer.moving_variance) + 0.5)
    return model


def streamed(streaming, frames, chunks):
    """Return the answers to frames in chunks."""
    state = streaming.initial_state(len(frames))
    answers, start = [], 0
    for size in chunks:
        found, state = streaming(ops.convert_to_tensor(frames[:, start : start + size]), state)
        answers.append(numbers(found["output"]))
        start += size
    return np.concatenate(answers, axis=1)


def of_prefixes(model, frames, least):
    """Return the answers of the whole model to the first `least` frames, to one more, and so on."""
    return [numbers(model(frames[:, :length])) for length in range(least, T + 1)]


def recording():
    frames = floats(B, T, D, seed=3)
    frames[0, [0, 4, 5, 11]] = 0  # a frame that `Masking` masks
    frames[1, 3] = 0
    return frames


FRAME_MODELS = {
    "dense": lambda: [keras.layers.Dense(5), LayerNorm(), keras.layers.Dense(2, "relu")],
    "lstm": lambda: [
        recurrent.LSTM(5, return_sequences=True),
        recurrent.LSTM(7, return_sequences=True),
    ],
    "gru": lambda: [recurrent.GRU(5, return_sequences=True)],
    "simple rnn": lambda: [recurrent.SimpleRNN(5, return_sequences=True)],
    "qrnn": lambda: [recurrent.QRNN(5, window=3, return_sequences=True)],
    "stack": lambda: [
        recurrent.RNN([recurrent.LSTMCell(5), recurrent.GRUCell(2)], return_sequences=True)
    ],
    "other activation": lambda: [recurrent.LSTM(5, "relu", return_sequences=True)],
    "lstm of keras": lambda: [keras.layers.LSTM(5, return_sequences=True)],
    "gru of keras": lambda: [keras.layers.GRU(5, return_sequences=True)],
    "gru of keras, reset before": lambda: [
        keras.layers.GRU(5, reset_after=False, return_sequences=True)
    ],
    "rnn of keras": lambda: [keras.layers.SimpleRNN(5, return_sequences=True)],
    "stack of keras": lambda: [
        keras.layers.RNN([keras.layers.LSTMCell(5), keras.layers.GRUCell(2)], return_sequences=True)
    ],
    "masking, ours": lambda: [
        keras.layers.Masking(),
        recurrent.LSTM(5, return_sequences=True),
        recurrent.GRU(2, return_sequences=True),
    ],
    "masking, keras": lambda: [
        keras.layers.Masking(),
        keras.layers.LSTM(5, return_sequences=True),
        keras.layers.Dense(3),
    ],
    "convolution": lambda: [
        keras.layers.Conv1D(5, 3, padding="causal", dilation_rate=2, activation="relu"),
        keras.layers.Conv1D(2, 2, padding="causal"),
    ],
    "depthwise": lambda: [keras.layers.ZeroPadding1D((2, 0)), keras.layers.DepthwiseConv1D(3)],
    "separable": lambda: [keras.layers.ZeroPadding1D((2, 0)), keras.layers.SeparableConv1D(5, 3)],
    "attention": lambda: [
        RestrictedSelfAttention(2, 3, 4, causal=True),
        RestrictedSelfAttention(1, 3, 2, causal=True),
    ],
    "batch normalization": lambda: [
        keras.layers.BatchNormalization(),
        recurrent.GRU(5, return_sequences=True),
    ],
}
FRAME_MODELS |= {  # of layers that take no mask
    "masking, convolution": lambda: [
        keras.layers.Masking(),
        keras.layers.Dense(5),
        keras.layers.Conv1D(2, 3, padding="causal"),
    ],
    "masking, sum": lambda: [
        keras.layers.Masking(),
        keras.layers.Dense(5),
        lambda x: ops.cumsum(x, axis=1),
    ],
}


class Threefold(keras.layers.GlobalAveragePooling1D):
    """A user's subclass, which does more than its ancestor."""

    def call(self, inputs):
        return 3 * super().call(inputs)


SUMMARIES = {
    "a subclass": lambda: [Threefold()],
    "max and min from a number on": lambda: [
        lambda x: ops.concatenate(
            [ops.max(x, axis=1, initial=0.5), ops.min(x, axis=1, initial=-0.5)], axis=-1
        )
    ],
    "integers": lambda: [
        lambda x: ops.cast(x * 10, "int32"),
        lambda x: ops.mean(x, axis=-2) + ops.cast(ops.sum(x, axis=[1]), "float32"),
    ],
    "axes of a frame": lambda: [
        lambda x: (
            ops.mean(x, axis=(1, 2), keepdims=True)[:, 0]
            + ops.concatenate(
                [
                    ops.stack([ops.max(x, axis=(-1, 1)), ops.min(x, axis=(2, 1), initial=-0.5)], 1),
                    ops.sum(2 * x, axis=[1, 2], keepdims=True)[:, 0],
                    x[..., -1, :],
                    x[:, -1, ..., :1],
                ],
                axis=-1,
            )
        )
    ],
    "pooled frames": lambda: [
        lambda x: (
            keras.layers.GlobalAveragePooling1D(keepdims=True)(x)
            - keras.layers.GlobalMaxPooling1D(keepdims=True)(x)
        ),
        keras.layers.Flatten(),
    ],
    "booleans": lambda: [
        lambda x: ops.sum(x > 0.5, axis=1) + ops.cast(ops.max(x > 1.0, axis=1), "int32")
    ],
    "a summary as a recording": lambda: [
        recurrent.LSTM(6),
        keras.layers.Reshape((3, 2)),
        keras.layers.Dense(4),
        keras.layers.GRU(3, return_sequences=True),
        keras.layers.GlobalAveragePooling1D(),
    ],
    "valid, sum": lambda: [keras.layers.Conv1D(5, 3), lambda x: ops.sum(x, axis=1)],
    "masking, operations": lambda: [
        keras.layers.Masking(),
        keras.layers.Dense(5),
        lambda x: ops.concatenate([ops.mean(x, axis=1), ops.sum(x, axis=1)], axis=-1),
    ],
    "masking, mean": lambda: [
        keras.layers.Masking(),
        keras.layers.Dense(5),
        keras.layers.GlobalAveragePooling1D(),
    ],
    "last": lambda: [recurrent.LSTM(5), keras.layers.Dense(2)],
    "last of keras": lambda: [keras.layers.GRU(5), keras.layers.Dense(2)],
    "last real": lambda: [keras.layers.Masking(), keras.layers.LSTM(5)],
    "mean": lambda: [
        recurrent.GRU(5, return_sequences=True),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(2),
    ],
    "max": lambda: [recurrent.GRU(5, return_sequences=True), keras.layers.GlobalMaxPooling1D()],
    "structured": lambda: [
        StructuredSelfAttention(5, 2),
        lambda both: keras.layers.Dense(3)(both[0]),
    ],
    "valid, zeros, valid": lambda: [
        keras.layers.Conv1D(5, 2),
        keras.layers.ZeroPadding1D((1, 0)),
        keras.layers.Conv1D(4, 3),
        keras.layers.GlobalAveragePooling1D(),
    ],
    "valid, max": lambda: [
        keras.layers.Conv1D(5, 3),
        keras.layers.GlobalMaxPooling1D(),
        keras.layers.Dense(2),
    ],
    "valid, mean": lambda: [keras.layers.Conv1D(5, 3), keras.layers.GlobalAveragePooling1D()],
    "operations": lambda: [
        lambda x: ops.concatenate(
            [ops.mean(x, axis=1), ops.max(x, axis=1), ops.sum(x, axis=1), x[:, -1]], axis=-1
        )
    ],
    "reshaped": lambda: [recurrent.GRU(6), keras.layers.Reshape((2, 3)), lambda x: x[..., 0] * 2],
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_after_each_frame_a_summary_is_that_of_the_recording_up_to_it(name):
    model, frames = model_of(*SUMMARIES[name]()), recording()
    streaming = Streaming(model)
    assert streaming.delays == {"output": None}
    least = 3 if "valid" in name else 1
    assert streaming.warm_ups == {"output": least - 1}
    # A mean of masked frames alone is 0; of a recording Keras gives 0 / 0.
    expected = [np.nan_to_num(answer) for answer in of_prefixes(model, frames, least)]
    for chunks in CHUNKS:
        actual = streamed(streaming, frames, chunks)[:, least - 1 :]
        np.testing.assert_allclose(actual, np.stack(expected, axis=1), rtol=1e-5, atol=1e-6)


class Residual(keras.layers.Layer):
    """A user's layer, made of layers of Keras."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.convolution = keras.layers.Conv1D(D, 3, padding="causal")
        self.recurrent = keras.layers.GRU(D, return_sequences=True)

    def call(self, x):
        return x + self.recurrent(ops.relu(self.convolution(x)))


def named(name):
    """A model of its own of a layer with this name."""
    frames = keras.Input((None, D))
    layer = keras.layers.LSTM(D, return_sequences=True, name=name)
    return keras.Model(frames, layer(frames))


def twice_beside_another():
    """A layer that is called twice, beside one whose name is that of the second call."""
    layer = recurrent.LSTM(D, return_sequences=True, name="lstm")
    other = recurrent.LSTM(D, return_sequences=True, name="lstm_2")
    return lambda x: ops.concatenate([layer(x), layer(2 * x), other(x)], axis=-1)


class Standardized(keras.layers.Conv1D):
    def call(self, x):
        kernel = self.kernel - ops.mean(self.kernel, axis=(0, 1), keepdims=True)
        padded = ops.pad(x, [[0, 0], [self.kernel_size[0] - 1, 0], [0, 0]])
        return ops.conv(padded, kernel, padding="valid")


LAYERS_OF_LAYERS = {
    "equal names": lambda: [named("rec"), named("rec"), named("rec_2")],
    "names of calls": lambda: [twice_beside_another()],
    "user's": lambda: [Residual(), Residual()],
    "encoder": lambda: [
        keras.layers.Dense(6),
        Encoder(EncoderBlock(6, 2, 5, attention_window=3, causal=True, pre_norm=True), 2),
    ],
    "model in a model": lambda: [
        model_of(recurrent.GRU(5, return_sequences=True)),
        keras.layers.Dense(2),
    ],
    "sequential": lambda: [
        keras.Sequential([keras.Input((None, D)), keras.layers.LSTM(5, return_sequences=True)])
    ],
    "time distributed": lambda: [
        keras.layers.TimeDistributed(keras.layers.Dense(5)),
        keras.layers.Activation("softmax"),
    ],
    "encoder of distances": lambda: [
        keras.layers.Dense(6),
        Encoder(
            EncoderBlock(6, 2, 5, attention_window=3, causal=True, relative_clip=2),
            2,
            DistanceBias(2, 3, 3, bidirectional=False),
        ),
    ],
}
ALL = FRAME_MODELS | LAYERS_OF_LAYERS


@pytest.mark.filterwarnings("ignore:Layer 'conv1d")
@pytest.mark.parametrize("name", others_long(ALL, short=len(ALL) - 1))
def test_a_stream_gives_each_frame_what_the_model_gives_it(name):
    model, frames = model_of(*ALL[name]()), recording()
    streaming, expected = Streaming(model), numbers(model(frames))
    assert streaming.delays == {"output": 0}
    for chunks in CHUNKS:
        actual = streamed(streaming, frames, chunks)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_a_convolution_that_looks_ahead_is_a_delay():
    frames = keras.Input((None, D), name="frames")
    hidden = keras.layers.Conv1D(5, 3, padding="same", activation="relu")(frames)
    hidden = keras.layers.Conv1D(D, 5, padding="same")(hidden) + frames
    model = keras.Model(frames, recurrent.GRU(2, return_sequences=True)(hidden))
    randomize(model)
    streaming, numbers_in = Streaming(model), floats(B, T, D, seed=3)
    assert streaming.delays == {"output": 3}
    expected = numbers(model(numbers_in))
    for chunks in CHUNKS:
        actual = streamed(streaming, numbers_in, chunks)
        # The last frames of the whole recording know that nothing follows.
        np.testing.assert_allclose(actual[:, 3:], expected[:, :-3], rtol=1e-5, atol=1e-6)


def test_lengths_known_values_and_several_outputs_stream():
    frames = keras.Input((None, D), name="frames")
    lengths = keras.Input((), dtype=canonical("int64"), name="lengths")
    known = keras.Input((2, 5), name="known")
    places = ops.cumsum(ops.ones_like(frames[..., 0], dtype="int32"), axis=1)
    real = places <= ops.cast(lengths, "int32")[:, None]
    hidden = recurrent.LSTM(7, return_sequences=True)(frames, mask=real)
    last = recurrent.GRU(5)(hidden)
    summary, _ = StructuredSelfAttention(5, 2)(hidden, mask=real)
    both = keras.layers.Concatenate()([last, summary, keras.layers.Flatten()(known)])
    forecast = keras.layers.Reshape((2, 3))(keras.layers.Dense(6)(both)) + frames[:, -1:]
    tags = keras.layers.Dense(2)(hidden)
    inputs = {"frames": frames, "lengths": lengths, "known": known}
    model = keras.Model(inputs, {"forecast": forecast, "tags": tags})
    randomize(model)
    streaming = Streaming(model)
    assert streaming.others == ["known"]
    assert streaming.delays == {"forecast": None, "tags": 0}
    x, plans = floats(B, T, D, seed=3), floats(B, T, 2, 5, seed=4)
    state, start = streaming.initial_state(B), 0
    for size in (5, 1, 7):
        chunk = slice(start, start + size)
        answers, state = streaming(
            ops.convert_to_tensor(x[:, chunk]),
            state,
            {"known": ops.convert_to_tensor(plans[:, chunk])},
        )
        for place in range(size):
            end = start + place + 1
            whole = model(
                {"frames": x[:, :end], "lengths": np.full(B, end), "known": plans[:, end - 1]}
            )
            for name, actual in (
                ("forecast", answers["forecast"][:, place]),
                ("tags", answers["tags"][:, place]),
            ):
                expected = whole[name] if name == "forecast" else whole[name][:, -1]
                np.testing.assert_allclose(numbers(actual), numbers(expected), rtol=1e-5, atol=1e-6)
        start += size


class FromOne(keras.layers.SimpleRNNCell):
    def get_initial_state(self, batch_size=None):
        return [ops.ones((batch_size, self.units))]


REFUSED = {
    "bidirectional": (
        lambda: [recurrent.Bidirectional(recurrent.LSTM(5, return_sequences=True))],
        "bidirectional.* reads from the last frame",
    ),
    "bidirectional of keras": (
        lambda: [keras.layers.Bidirectional(keras.layers.LSTM(5))],
        "bidirectional.* reads from the last frame",
    ),
    "backwards": (lambda: [keras.layers.GRU(5, go_backwards=True)], "gru.* reads from the last"),
    "full attention": (lambda: [MultiHeadSelf()], "multi_head_attention.* attends to all frames"),
    "encoder": (
        lambda: [keras.layers.Dense(6), Encoder(EncoderBlock(6, 2, 5), 2)],
        "attention .MultiHeadAttention. attends to all frames",
    ),
    "window ahead": (
        lambda: [RestrictedSelfAttention(2, 3, 4)],
        "4 frames that are to come; set causal",
    ),
    "strides": (lambda: [keras.layers.Conv1D(5, 3, strides=2)], "conv1d.*strides=1"),
    "pooling": (
        lambda: [keras.layers.MaxPooling1D(2)],
        r"max_pooling1d\w* \(MaxPooling1D\): a summary of 2 frames .* Write GlobalMaxPooling1D, a",
    ),
    "normalized over time": (
        lambda: [lambda x: x - ops.mean(x, axis=1, keepdims=True)],
        "subtract",
    ),
    "softmax over time": (lambda: [keras.layers.Softmax(axis=1)], "softmax.* other frames"),
    "first frame": (lambda: [lambda x: x[:, 0]], "get_item.* no result for each frame"),
    "first frames": (lambda: [lambda x: x[:, :10], keras.layers.LSTM(3)], "frames by their places"),
    "far frames": (lambda: [lambda x: ops.roll(x, 10, axis=1)], "roll.* looks at other frames"),
    "more frames": (lambda: [keras.layers.UpSampling1D(2)], "no result for each frame"),
    "batch": (
        lambda: [lambda x: x - ops.mean(x, axis=0, keepdims=True)],
        "mean.* no result for each frame",
    ),
    "rows of a batch": (lambda: [lambda x: ops.cumsum(x, axis=0)], "cumsum.* mixes recordings"),
    "frames of two axes": (
        lambda: [keras.layers.Reshape((-1, 3, 1)), keras.layers.ConvLSTM1D(2, 2)],
        r"conv_lstm1d.* frames of one axis",
    ),
    "batch of summaries": (
        lambda: [recurrent.GRU(3), lambda x: x - ops.mean(x, axis=0, keepdims=True)],
        "mean.* mixes recordings of a batch",
    ),
    "reversed": (lambda: [lambda x: ops.flip(x, axis=1)], "flip.* looks at other frames"),
    "centred, summed up": (
        lambda: [keras.layers.Conv1D(5, 3, padding="same"), keras.layers.GlobalMaxPooling1D()],
        'padding="causal"',
    ),
    "zeros before an LSTM": (
        lambda: [keras.layers.ZeroPadding1D((2, 0)), keras.layers.LSTM(3)],
        r"lstm\w*: only a convolution may read frames after ZeroPadding1D; received 2",
    ),
    "zeros before a mean": (
        lambda: [keras.layers.ZeroPadding1D((2, 0)), lambda x: ops.mean(x, axis=1)],
        r"mean\w*: only a convolution may read",
    ),
    "zeros at the end": (lambda: [keras.layers.ZeroPadding1D((2, 0))], "output: frames after Zero"),
    "gate of a summary": (  # which no random recording opens
        lambda: [lambda x: x * ops.cast(ops.mean(x, axis=1, keepdims=True) > 9, x.dtype)],
        "multiply.* beside what is known at the end",
    ),
    "a cell that begins elsewhere": (
        lambda: [keras.layers.RNN(FromOne(3))],
        "FromOne.get_initial_state must return zeros",
    ),
    "zeros behind": (lambda: [keras.layers.ZeroPadding1D(1)], r"ZeroPadding1D\(\(2, 0\)\)"),
}


class MultiHeadSelf(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.attention = keras.layers.MultiHeadAttention(2, 3)

    def call(self, x):
        return self.attention(x, x, use_causal_mask=True)


@pytest.mark.parametrize("name", REFUSED)
def test_what_looks_ahead_is_refused_by_name(name):
    layers, message = REFUSED[name]
    with pytest.raises(StreamError, match=message):
        Streaming(model_of(*layers()))


def test_a_subclass_has_no_rule_of_its_ancestor():
    with pytest.raises(StreamError, match="standardized: pad.* no result for each frame"):
        Streaming(model_of(Standardized(3, 3)))


def test_a_second_recording_is_refused_by_its_name():
    frames, others = (keras.Input((None, D), name=name) for name in ("frames", "others"))
    model = keras.Model([frames, others], keras.layers.Dense(2)(frames + others))
    with pytest.raises(StreamError, match="others is a second recording"):
        Streaming(model)


def test_a_layer_named_frame_has_a_count_of_its_own():
    frames = keras.Input((None, D), name="frames")
    masked = keras.layers.GlobalAveragePooling1D(name="frame")(keras.layers.Masking()(frames))
    output = ops.concatenate([masked, keras.layers.GlobalAveragePooling1D()(frames)], axis=-1)
    model, x = keras.Model(frames, output), recording()
    last = streamed(Streaming(model), x, [1] * T)[:, -1]
    np.testing.assert_allclose(last, numbers(model(x)), rtol=1e-5, atol=1e-6)


def test_before_its_first_value_a_summary_is_zero_or_tells_of_a_state_that_is_not_finite():
    model = model_of(
        keras.layers.Conv1D(5, 3), keras.layers.Conv1D(5, 2), keras.layers.GlobalMaxPooling1D()
    )
    streaming, x = Streaming(model), floats(B, T, D, seed=3)
    np.testing.assert_array_equal(streamed(streaming, x, [3, T - 3])[:, :3], 0)
    x[1, 1] = [3e38, -3e38, 3e38]
    found, _ = streaming(ops.convert_to_tensor(x[:, :3]), streaming.initial_state(B))
    assert not numbers(found["output"])[0].any() and np.isnan(numbers(found["output"])[1]).all()


def test_a_subclassed_model_is_refused():
    class Model(keras.Model):
        def call(self, frames):
            return frames

    with pytest.raises(StreamError, match="is no functional model"):
        Streaming(Model())


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_forecaster_answers_after_each_step(cell):
    window = keras.Input((None, D), name="window")
    known = keras.Input((2, 5), name="known")
    lengths = keras.Input((), dtype=canonical("int64"), name="lengths")
    inputs = {"window": window, "known": known, "lengths": lengths}
    forecaster = Forecaster(2, 7, 2, cell, num_known=5, quantiles=[0.1, 0.5])
    model = keras.Model(inputs, forecaster(inputs))
    randomize(model)
    streaming = Streaming(model, "window")
    x, plans = floats(B, T, D, seed=3), floats(B, T, 2, 5, seed=4)
    state, answers = streaming.initial_state(B), []
    for start, end in ((0, 5), (5, 6), (6, T)):
        chunk = {"known": ops.convert_to_tensor(plans[:, start:end])}
        found, state = streaming(ops.convert_to_tensor(x[:, start:end]), state, chunk)
        answers.append(numbers(found["output"]))
    answers = np.concatenate(answers, axis=1)
    for end in (1, 5, 6, T):
        given = {"window": x[:, :end], "known": plans[:, end - 1], "lengths": np.full(B, end)}
        np.testing.assert_allclose(answers[:, end - 1], numbers(model(given)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", [{"scale": True}, {"decoder": "recurrent"}, {"cell": "qrnn"}])
def test_a_forecaster_that_needs_its_whole_window_is_refused(options):
    window = keras.Input((None, D), name="window")
    model = keras.Model({"window": window}, Forecaster(2, 7, **options)({"window": window}))
    with pytest.raises(StreamError, match=r"forecaster\w*: (scale=True reads|set decoder=)"):
        Streaming(model, "window")


@pytest.mark.parametrize("name", ["lstm", "qrnn", "convolution", "attention", "lstm of keras"])
def test_a_model_of_mixed_precision_streams_in_its_precision(name, restored):
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = model_of(*FRAME_MODELS[name]())
    frames, streaming = ops.convert_to_tensor(recording()), Streaming(model)
    answers, state = streaming(frames, streaming.initial_state(B))
    floating = {entry.dtype for entry in streaming.entries} - {"bool"}
    assert floating == {"bfloat16"}
    close(ops.cast(answers["output"], "float32"), ops.cast(model(frames), "float32"), 2e-2, 2e-2)


DROPPING = {
    "dropout": lambda: [keras.layers.Dropout(0.5)],
    "lstm": lambda: [recurrent.LSTM(5, dropout=0.5, return_sequences=True)],
    "lstm of keras": lambda: [keras.layers.LSTM(5, dropout=0.5, return_sequences=True)],
    "qrnn": lambda: [recurrent.QRNN(5, zoneout=0.5, return_sequences=True)],
    "attention": lambda: [RestrictedSelfAttention(1, 3, 4, causal=True, dropout=0.5)],
    "block": lambda: [
        keras.layers.Dense(6),
        EncoderBlock(6, 2, 7, attention_window=3, causal=True, dropout=0.5),
    ],
}


@pytest.mark.parametrize("name", DROPPING)
def test_layers_drop_out_in_training_alone(name):
    streaming = Streaming(model_of(*DROPPING[name]()))
    frames, state = ops.convert_to_tensor(recording()), streaming.initial_state(B)
    once, again = (numbers(streaming(frames, state, training=True)[0]["output"]) for _ in range(2))
    assert np.abs(once - again).max() > 1e-3
    close(streaming(frames, state)[0]["output"], streaming.model(frames))

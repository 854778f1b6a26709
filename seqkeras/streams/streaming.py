"""The step of a stream, made of a functional model."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from seqkeras.runs.reference import named_outputs
from seqkeras.streams.flow import EACH, SO_FAR, Flow, StreamError
from seqkeras.streams.walk import Walk

LENGTHS, PADDING_MASK = "lengths", "padding_mask"
BATCH, FRAMES = 2, 5  # of the random frames by which a model is looked at


class Entry(NamedTuple):
    """A tensor of a stream's state.

    Attributes:
        name: name of the layer and of what it keeps.
        shape: shape without the batch.
        dtype: dtype; a stream begins with zeros.

    Example:
        >>> import keras
        >>> from seqkeras.recurrent import GRU
        >>> from seqkeras.streams import Streaming
        >>> frames = keras.Input((None, 3), name="frames")
        >>> model = keras.Model(frames, GRU(4, return_sequences=True, name="gru")(frames))
        >>> [(entry.name, entry.shape, entry.dtype) for entry in Streaming(model).entries]
        [('gru_state_0', (4,), 'float32')]
    """

    name: str
    shape: tuple
    dtype: str


class Streaming:
    """The step of a stream: frames and state in, answers and state out.

        answers(1..T), state = streaming(frames(1..T), state)

    The answers do not depend on how the frames are cut into chunks. They are the model's: an output
    for each frame is that of the frame; an output for a whole recording is, after each frame, that
    of the recording up to the frame. Layers that remember are RNN, LSTM, GRU and QRNN, causal
    convolutions, causal attention within a window, and means, maxima, sums and attention over all
    frames. An operation that acts on each frame alone is told by its numbers: it must give the
    frames of a random recording, one by one, what it gives them together. A layer of other layers
    is taken apart.

    Args:
        model: a functional or sequential model, ours or of Keras's layers, with weights.
        frames: name of the input of frames, (B, T, ...).
        inputs: name -> `KerasTensor` of each input; None for the names that the inputs have.

    Attributes:
        entries: list of `Entry`, the state.
        delays: name of an output -> the number of frames by which its answers come late; None for
            an output of a whole recording, which has an answer after each frame.
        warm_ups: name of an output -> the number of frames before its first answer: those by which
            it comes late, or those that a convolution with padding="valid" reads before its first.
        others: names of inputs other than frames, lengths and a padding mask: each frame has its
            own value, (B, T, ...), of them.

    Call arguments:
        frames: (B, T, ...).
        state: name -> tensor, as `entries` say; see `initial_state`.
        others: name -> (B, T, ...) of the other inputs.
        training: whether layers are in training, as those that drop out.

    Returns:
        name -> (B, T, ...) answers, and the new state. The only output of a model is "output". A
        summary is zero before its first value, and NaN there if the state is not finite.

    Raises:
        StreamError: if the model is no functional one, or a layer looks ahead or can not be carried
            from frame to frame.

    Example:
        >>> import keras
        >>> import numpy as np
        >>> from seqkeras.recurrent import LSTM
        >>> from seqkeras.streams import Streaming
        >>> frames = keras.Input((None, 3), name="frames")
        >>> model = keras.Model(frames, LSTM(4, return_sequences=True)(frames))
        >>> streaming, recording = Streaming(model), np.ones((1, 7, 3), "float32")
        >>> first, state = streaming(recording[:, :2], streaming.initial_state(1))
        >>> rest, state = streaming(recording[:, 2:], state)
        >>> np.allclose(rest["output"], model(recording)[:, 2:], atol=1e-6)
        True
    """

    def __init__(
        self,
        model: keras.Model,
        frames: str = "frames",
        inputs: Mapping[str, keras.KerasTensor] | None = None,
    ):
        self.model = functional(model)
        self.frames = frames
        self.inputs = inputs or {tensor.name: tensor for tensor in self.model.inputs}
        if frames not in self.inputs:
            raise StreamError(
                f"{model.name}: must have an input {frames!r}; it has {', '.join(self.inputs)}."
            )
        self.others = [name for name in self.inputs if name not in (frames, LENGTHS, PADDING_MASK)]
        self._known = {}
        chunk = {name: self._random(name) for name in (frames, *self.others)}
        walk = Walk(self._known, None, chunk[frames])
        flows = self._walk(walk, chunk)
        self.entries = [
            Entry(name, tuple(tensor.shape[1:]), keras.backend.standardize_dtype(tensor.dtype))
            for name, tensor in walk.kept.items()
        ]
        self.delays = {
            name: flow.delay if flow.kind == EACH else None for name, flow in flows.items()
        }
        self.warm_ups = {name: flow.delay for name, flow in flows.items()}

    def _random(self, name):
        if name != self.frames and None in self.inputs[name].shape[1:]:
            raise StreamError(
                f"{self.model.name}: {name} is a second recording, of shape "
                f"{self.inputs[name].shape}; a stream has one: join them along the last axis."
            )
        shape = [size or FRAMES for size in self.inputs[name].shape[1:]]
        shape = (FRAMES, *shape[1:]) if name == self.frames else (FRAMES, *shape)
        numbers = np.random.default_rng(0).normal(size=(BATCH, *shape))
        return ops.convert_to_tensor(numbers, self.inputs[name].dtype)

    def __call__(self, frames, state, others=None, training=False):
        chunk = {self.frames: frames} | (others or {})
        walk = Walk(self._known, state, frames, training)
        flows = self._walk(walk, chunk)
        answers = {
            name: flow.tensor if flow.kind == EACH else walk.unfolded(flow.tensor)
            for name, flow in flows.items()
        }
        return answers, walk.kept

    def _walk(self, walk, chunk):
        flows = {id(tensor): self._input(walk, name, chunk) for name, tensor in self.inputs.items()}
        flows = [flows[id(tensor)] for tensor in self.model.inputs]
        outputs = named_outputs(walk.through(self.model, flows))
        if padded := [name for name, flow in outputs.items() if flow.padding]:
            raise StreamError(
                f"{padded[0]}: frames after ZeroPadding1D are read by a convolution alone."
            )
        return {name: walk.from_first(flow) for name, flow in outputs.items()}

    def _input(self, walk, name, chunk):
        if name == self.frames:
            return Flow(chunk[name], EACH)
        if name == LENGTHS:
            count = ops.cast(walk.fold(walk.count()), self.inputs[name].dtype)
            return Flow(count, SO_FAR, depends=False)
        if name == PADDING_MASK:
            real = ops.ones_like(chunk[self.frames], dtype="bool")
            real = ops.reshape(real, (*ops.shape(real)[:2], -1))[..., 0]
            return Flow(real, EACH, depends=False, is_true=True)
        return Flow(walk.fold(chunk[name]), SO_FAR)

    def initial_state(self, batch_size):
        """Return name -> zeros."""
        return {
            entry.name: ops.zeros((batch_size, *entry.shape), entry.dtype) for entry in self.entries
        }


def functional(model) -> Any:
    """Return the functional form of a model.

    Raises:
        StreamError: if it has none.
    """
    if isinstance(model, keras.Sequential) and model.built:
        return model._functional
    if hasattr(model, "_run_through_graph"):
        return model
    raise StreamError(
        f"{model.name}: a {type(model).__name__} is no functional model, so its layers are not "
        "known. Write keras.Model(inputs, outputs)."
    )

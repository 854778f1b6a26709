"""A tensor of a model, as it flows through a stream."""

import copy

EACH, SO_FAR = "each", "so far"


class StreamError(ValueError):
    """A model, or a layer of it, can not stream; the message names the layer and a way out.

    Example:
        >>> import keras
        >>> from seqkeras.recurrent import GRU, Bidirectional
        >>> from seqkeras.streams import Streaming, StreamError
        >>> frames = keras.Input((None, 3), name="frames")
        >>> layer = Bidirectional(GRU(4, return_sequences=True), name="both")
        >>> try:
        ...     Streaming(keras.Model(frames, layer(frames)))
        ... except StreamError as error:
        ...     print(str(error).partition(",")[0])
        both (Bidirectional) reads from the last frame
    """


class Flow:
    """A tensor of a model while a chunk of T frames passes.

    Attributes:
        tensor: of kind EACH, (B, T, ...), a value for each frame, where the model has one for each
            frame; of kind SO_FAR, (B T, ...), a row for each frame, where the model has one value
            for all frames: what the value is if the recording ends with that frame.
        kind: EACH or SO_FAR.
        delay: number of frames by which a value of kind EACH comes late; number of frames before
            the first value of kind SO_FAR.
        ahead: number of frames that a value looks ahead, a part of the delay.
        padding: number of frames of zeros before the first, for the convolution that reads it.
        depends: whether the value depends on the numbers in the frames, and not only on their
            count.
        is_true: whether the value is a mask that is True everywhere.
    """

    def __init__(self, tensor, kind, delay=0, ahead=0, padding=0, depends=True, is_true=False):
        self.tensor = tensor
        self.kind = kind
        self.delay = delay
        self.ahead = ahead
        self.padding = padding
        self.depends = depends
        self.is_true = is_true

    def with_tensor(self, tensor, **changes):
        """Return a flow of another tensor that comes as late."""
        return Flow(
            tensor, **{"kind": self.kind, "delay": self.delay, "ahead": self.ahead} | changes
        )

    def in_floats_of(self, policy):
        """Return the flow with floats in the dtype in which a `keras.DTypePolicy` computes."""
        flow = copy.copy(self)
        flow.tensor = policy.convert_input(self.tensor, True, policy.compute_dtype)
        if hasattr(self.tensor, "_keras_mask"):
            flow.tensor._keras_mask = self.tensor._keras_mask
        return flow

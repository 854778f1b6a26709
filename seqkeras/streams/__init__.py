"""Streams: a causal model answers each frame as it comes, from a state of constant size.

    answers, state = streaming(frames, state)

`Streaming` makes this step of a functional Keras model: of frames (B, T, ...), any number of them,
it gives the answers after each, and the state from which the next frames go on. What acts on a
frame alone stays as it is; a layer that remembers keeps its memory in the state. A layer that looks
ahead is refused by its name.
"""

from seqkeras.streams import (  # noqa: F401 (the rules of layers)
    attention,
    convolutions,
    forecaster,
    pooling,
    recurrent,
)
from seqkeras.streams.flow import StreamError
from seqkeras.streams.streaming import Entry, Streaming

__all__ = ["Entry", "StreamError", "Streaming"]

"""Convolutions over time in a stream: each reads the frames before the present one again."""

import keras
from keras import ops

from seqkeras.streams.flow import EACH, StreamError
from seqkeras.streams.walk import streamed

STRIDES = "a step over frames has no answer for each frame"


@streamed.register
def _(layer: keras.layers.Conv1D, walk, frames, **_):
    def convolve(seen):
        outputs = ops.conv(seen, layer.kernel, padding="valid", dilation_rate=layer.dilation_rate)
        return _finished(layer, outputs)

    return _convolved(layer, walk, frames, convolve)


@streamed.register
def _(layer: keras.layers.DepthwiseConv1D, walk, frames, **_):
    def convolve(seen):
        outputs = ops.depthwise_conv(
            seen, layer.kernel, padding="valid", dilation_rate=layer.dilation_rate
        )
        return _finished(layer, outputs)

    return _convolved(layer, walk, frames, convolve)


@streamed.register
def _(layer: keras.layers.SeparableConv1D, walk, frames, **_):
    def convolve(seen):
        kernels = layer.depthwise_kernel, layer.pointwise_kernel
        outputs = ops.separable_conv(
            seen, *kernels, padding="valid", dilation_rate=layer.dilation_rate
        )
        return _finished(layer, outputs)

    return _convolved(layer, walk, frames, convolve)


@streamed.register
def _(layer: keras.layers.ZeroPadding1D, walk, frames):
    before, behind = layer.padding
    if behind:
        raise StreamError(
            f"{layer.name}: zeros after the last frame; a stream has no last frame. Write "
            f"ZeroPadding1D(({before + behind}, 0))."
        )
    changes = {"delay": frames.delay - before, "padding": frames.padding + before}
    return frames.with_tensor(frames.tensor, **changes)


def _convolved(layer, walk, frames, convolve):
    if frames.kind != EACH:
        raise StreamError(f"{layer.name}: a summary over time has no frames to convolve.")
    if layer.strides != (1,) or layer.data_format != "channels_last":
        raise StreamError(f"{layer.name}: {STRIDES}; set strides=1, data_format='channels_last'.")
    tensor, _ = walk.without_padding(frames)
    past = (layer.kernel_size[0] - 1) * layer.dilation_rate[0]
    seen = walk.after(walk.name(layer, "frames"), tensor, past)
    late, ahead = {
        "causal": (0, 0),
        "valid": (past, 0),  # its first output is that of the first window
        "same": (past - past // 2, past - past // 2),
    }[layer.padding]
    late, ahead = frames.delay + late, frames.ahead + ahead
    if frames.padding and late < 0:
        raise StreamError(f"{layer.name}: more frames of zeros than the convolution reads.")
    return frames.with_tensor(convolve(seen), delay=late, ahead=ahead, padding=0)


def _finished(layer, outputs):
    if layer.use_bias:
        outputs = outputs + layer.bias
    return outputs if layer.activation is None else layer.activation(outputs)

"""Summaries over time in a stream: of all frames so far."""

import keras
from keras import ops

from seqkeras.composites.recurrent import LONGEST, keras_rnn
from seqkeras.streams.flow import EACH, StreamError
from seqkeras.streams.walk import canonical, streamed


@streamed.register
def _(layer: keras.layers.GlobalAveragePooling1D, walk, frames, mask=None):
    _require_last_axis(layer)
    result = _mean(layer, walk, frames, walk.mask_of(frames, mask))
    return _with_frame(result) if layer.keepdims else result


@streamed.register
def _(layer: keras.layers.GlobalMaxPooling1D, walk, frames):
    _require_last_axis(layer)
    result = walk.so_far(layer, frames, _largest(layer, walk, frames, ops.maximum))
    return _with_frame(result) if layer.keepdims else result


@streamed.register(keras.layers.MaxPooling1D)
@streamed.register(keras.layers.AveragePooling1D)
def _(layer, walk, frames):
    kind = type(layer).__name__
    raise StreamError(
        f"{layer.name} ({kind}): a summary of {layer.pool_size[0]} frames at each "
        f"{layer.strides[0]} is no answer for each frame. Write Global{kind}, a summary of all "
        'frames so far, or Conv1D(padding="causal"), which reads the last frames.'
    )


@streamed.register
def _(operation: keras.Operation, walk, *args, **kwargs):
    """Apply the rule of an operation of `keras.ops`, whose class has no public name."""
    rule = OPERATIONS.get(type(operation).__name__)
    is_layer = isinstance(operation, keras.layers.Layer)
    return NotImplemented if rule is None or is_layer else rule(operation, walk, *args, **kwargs)


def _reduced(operation, walk, frames):
    axes = _axes(operation, frames)
    if frames.kind != EACH or 1 not in axes or 0 in axes:
        return NotImplemented
    kind, dtype = type(operation).__name__, keras.backend.standardize_dtype(frames.tensor.dtype)
    if dtype == "bool":
        frames = frames.with_tensor(ops.cast(frames.tensor, "int32"))
    if others := [axis for axis in axes if axis != 1]:  # the axes of a frame, of each frame first
        of_a_frame = getattr(ops, kind.lower())
        frames = frames.with_tensor(of_a_frame(frames.tensor, axis=others, keepdims=True))
    if kind in ("Max", "Min"):
        larger = ops.maximum if kind == "Max" else ops.minimum
        result = walk.so_far(operation, frames, _largest(operation, walk, frames, larger))
        if operation.initial is not None:
            result.tensor = larger(result.tensor, ops.cast(operation.initial, dtype))
        result.tensor = ops.cast(result.tensor, dtype)
    elif kind == "Sum":
        tensor, _ = walk.without_padding(frames)
        tensor = ops.cast(tensor, _sum_dtype(frames))
        result = walk.so_far(
            operation, frames, ops.cast(_sums(operation, walk, "sum", tensor), frames.tensor.dtype)
        )
    else:
        result = _mean(operation, walk, frames, None)
    result = _with_frame(result)
    if not operation.keepdims:
        result.tensor = ops.squeeze(result.tensor, axis=axes)
    return result


def _with_frame(summary):
    """Return a summary with an axis of one frame."""
    summary.tensor = summary.tensor[:, None]
    return summary


def _summed_up(operation, walk, x):
    if x.kind != EACH or _axes(operation, x) != [1]:
        return NotImplemented
    tensor, _ = walk.without_padding(x)
    return x.with_tensor(_sums(operation, walk, "sum", tensor), depends=x.depends)


def _item(operation, walk, x, key):
    """x[:, -1], the last frame, is the present one; x[:, -1:] has an axis of one frame."""
    parts = tuple(key) if isinstance(key, (tuple, list)) else (key,)  # a list once it is loaded
    if Ellipsis in parts and None not in parts:
        index = parts.index(Ellipsis)
        rest = len(x.tensor.shape) + 1 - len(parts)
        parts = (*parts[:index], *[slice(None)] * rest, *parts[index + 1 :])
    if x.kind != EACH or len(parts) < 2 or parts[0] != slice(None):
        return NotImplemented
    if not (parts[1] == -1 or parts[1] == slice(-1, None, None)):
        if isinstance(parts[1], slice) and parts[1] != slice(None):
            raise StreamError(
                f"{operation.name}: takes frames by their places; of a stream only the last one, "
                'x[:, -1], can be taken. Earlier frames are read by Conv1D(padding="causal").'
            )
        return NotImplemented
    rest = x.tensor[(slice(None), slice(None), *parts[2:])]
    result = walk.so_far(operation, x, rest)
    return result if parts[1] == -1 else _with_frame(result)


OPERATIONS = {
    "Mean": _reduced,
    "Max": _reduced,
    "Min": _reduced,
    "Sum": _reduced,
    "Cumsum": _summed_up,
    "GetItem": _item,
}


def _mean(operation, walk, frames, mask):
    tensor, real = walk.without_padding(frames, mask)
    sums = _sums(operation, walk, "sum", ops.cast(tensor, canonical("float64")))
    if real is None:
        count = walk.count()
    else:
        count = _sums(operation, walk, "count", ops.cast(real, canonical("int64")))
    count = ops.cast(ops.maximum(count, 1), sums.dtype)  # 0 of masked frames alone
    count = ops.reshape(count, (*walk.size, *[1] * (len(tensor.shape) - 2)))
    return walk.so_far(
        operation, frames, ops.cast(sums / count, keras.backend.result_type(tensor.dtype, float))
    )


def _sums(operation, walk, part, tensor):
    """Return (B, T, ...), the sums of all frames up to each."""
    name = walk.name(operation, part)
    before = walk.recall(name, tuple(tensor.shape[2:]), tensor.dtype)
    sums = before[:, None] + ops.cumsum(tensor, axis=1)
    walk.keep(name, sums[:, -1])
    return sums


def _largest(operation, walk, frames, larger):
    """Return (B, T, ...), the largest of all frames up to each."""
    names = [walk.name(operation, part) for part in ("largest", "begun")]
    shape = tuple(frames.tensor.shape[2:])
    largest = walk.recall(names[0], shape, frames.tensor.dtype)
    begun = walk.recall(names[1], shape, "bool")
    real = walk.real(frames)

    def step(now, states):
        x, is_real = now
        largest, begun = states
        takes = ops.logical_or(ops.logical_not(begun), larger(x, largest) == x)
        after = ops.where(ops.logical_and(takes, is_real), x, largest)
        return after, [after, ops.logical_or(begun, is_real)]

    if real is None:
        real = ops.ones_like(frames.tensor, dtype="bool")
    else:
        real = ops.reshape(real, (*walk.size, *[1] * len(shape)))
        real = ops.broadcast_to(real, ops.shape(frames.tensor))
    steps = tuple(ops.swapaxes(tensor, 0, 1) for tensor in (frames.tensor, real))
    _, outputs, states = keras_rnn(
        step,
        steps,
        [largest, begun],
        time_major=True,
        input_length=frames.tensor.shape[1] or LONGEST,
    )
    outputs = ops.swapaxes(outputs, 0, 1)
    for name, state in zip(names, states, strict=True):
        walk.keep(name, state)
    return outputs


def _sum_dtype(frames):
    kind = keras.backend.standardize_dtype(frames.tensor.dtype)
    return canonical("float64") if "float" in kind else kind


def _axes(operation, frames):
    """Return the axes of an operation, from 0 on; none if it is over all numbers."""
    axes = operation.axis if isinstance(operation.axis, (tuple, list)) else [operation.axis]
    return [axis % len(frames.tensor.shape) for axis in axes if axis is not None]


def _require_last_axis(layer):
    if layer.data_format != "channels_last":
        raise StreamError(f"{layer.name}: set data_format='channels_last'.")

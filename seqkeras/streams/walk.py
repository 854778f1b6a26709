"""A walk of a chunk of frames through the operations of a model."""

import functools

import keras
import numpy as np
from keras import KerasTensor, ops, tree
from keras.src.backend import AutocastScope  # as a layer's call has it; it has no public name

from seqkeras.streams.flow import EACH, SO_FAR, Flow, StreamError

COUNT = "frames_so_far"  # the entry of their number; no layer's entry ends so
CLOSE = {"rtol": 1e-4, "atol": 1e-5, "equal_nan": True}
LONG = 257  # frames of a recording by which a look at far frames shows
CUTS = (0, 1, 3, 10, 100)  # where this recording is cut
READ_PADDING = tuple(
    getattr(keras.layers, name)
    for name in ("Conv1D", "DepthwiseConv1D", "SeparableConv1D", "ZeroPadding1D")
)
MIXES = "mixes recordings of a batch"


def canonical(dtype):
    """Return the dtype itself; on JAX the one of 32 bits for 64, unless `jax_enable_x64` is set."""
    return keras.backend.standardize_dtype(ops.convert_to_tensor(np.zeros((), dtype)).dtype)


class Walk:
    """A chunk of frames on its way through a model.

    Args:
        known: what the first walk found of each call: its name (`count_call`) -> the functional
            form of a layer of layers, or None for an operation of frames.
        state: name -> tensor; None in the first walk, which looks at numbers.
        frames: (B, T, ...).
        training: whether layers are in training, as those that drop out.

    Attributes:
        kept: name -> tensor, the new state.
    """

    def __init__(self, known, state, frames, training=False):
        self.known, self.training = known, training
        self.state = state
        self.size = ops.shape(frames)[:2]
        self.kept = {}
        self._before = None  # the number of frames before the chunk, if it is asked for
        self._names = {}  # name of an operation -> name of its last call
        self._taken = set()  # names of calls

    def through(self, model, flows):
        """Return the flows of a model's outputs."""
        return model._run_through_graph(
            flows, operation_fn=lambda operation: functools.partial(self.apply, operation)
        )

    def apply(self, operation, *args, **kwargs):
        """Return the flows of an operation's results."""
        flows = flows_of(args, kwargs)
        if not flows:
            return operation(*args, **kwargs)
        self.count_call(operation)
        if self.training and getattr(operation, "_call_has_training_arg", False):
            kwargs["training"] = True
        if all(flow.kind == SO_FAR for flow in flows):  # each is a recording's: nothing remembers
            first = max(flows, key=lambda flow: flow.delay)
            depends = any(flow.depends for flow in flows) and not _counts_alone(operation)
            flow_of = functools.partial(first.with_tensor, depends=depends)
            return self.mapped(operation, flow_of, args, kwargs)
        result = NotImplemented
        if not _has_own_call(operation):
            result = self.by_rule(operation, args, kwargs)
        if result is NotImplemented:
            return self.of_frames(operation, args, kwargs)
        if not isinstance(operation, READ_PADDING):
            _require_no_padding(operation, flows)
        return result

    def by_rule(self, operation, args, kwargs):
        """Return what `streamed` does, in the precision in which a layer computes."""
        policy = getattr(operation, "dtype_policy", None)
        if policy is None or policy.compute_dtype == policy.variable_dtype:
            return streamed(operation, self, *args, **kwargs)
        args, kwargs = tree.map_structure(
            lambda leaf: leaf.in_floats_of(policy) if isinstance(leaf, Flow) else leaf,
            (args, kwargs),
        )
        with AutocastScope(policy.compute_dtype):
            return streamed(operation, self, *args, **kwargs)

    def count_call(self, operation):
        """Name a call of an operation, and so what the call keeps: by the operation, with a number
        where another call has the name."""
        name, number = operation.name, 1
        while name in self._taken:
            number += 1
            name = f"{operation.name}_{number}"
        self._taken.add(name)
        self._names[operation.name] = name

    # The state.

    def name(self, operation, part):
        """Return the name of an entry of the state: that of a call and of what the call keeps."""
        return f"{self._names[operation.name]}_{part}"

    def recall(self, name, shape, dtype):
        """Return an entry of the state as the chunk finds it, (B, *shape)."""
        if self.state is None:
            return ops.zeros((self.size[0], *shape), dtype)
        return self.state[name]

    def keep(self, name, tensor):
        """Keep an entry of the state for the next chunk."""
        self.kept[name] = tensor

    def count(self):
        """Return (B, T) integers, the number of frames up to each frame."""
        dtype = canonical("int64")
        if self._before is None:
            self._before = self.recall(COUNT, (), dtype)
            self.keep(COUNT, self._before + ops.cast(self.size[1], dtype))
        return self._before[:, None] + ops.arange(1, self.size[1] + 1, dtype=dtype)[None]

    # Frames.

    def fold(self, tensor):
        """Return (B T, ...) of (B, T, ...)."""
        return ops.reshape(tensor, (-1, *tensor.shape[2:]))

    def unfolded(self, tensor):
        """Return (B, T, ...) of (B T, ...)."""
        return ops.reshape(tensor, (*self.size, *tensor.shape[1:]))

    def so_far(self, operation, flow, tensor):
        """Return the flow of a summary (B, T, ...) of the frames up to each frame, from the first
        that there is.

        Raises:
            StreamError: if the frames that are summed up look ahead.
        """
        if flow.ahead:
            raise StreamError(
                f"{operation.name}: a summary over time of a convolution that looks ahead is known "
                'only at the end: write padding="causal".'
            )
        return Flow(self.fold(tensor), SO_FAR, max(flow.delay, 0))

    def from_first(self, flow):
        """Return the flow of an output. A summary before its first value is zero, or NaN if the
        state is not finite, which a pipeline refuses: no later frame would mend it."""
        if (
            flow.kind == EACH
            or not flow.delay
            or not keras.backend.is_float_dtype(flow.tensor.dtype)
        ):
            return flow
        zeros = ops.zeros((self.size[0],), flow.tensor.dtype)
        for entry in self.kept.values():
            if keras.backend.is_float_dtype(entry.dtype):
                finite = ops.all(ops.isfinite(ops.reshape(entry, (self.size[0], -1))), axis=1)
                zeros = ops.where(finite, zeros, ops.cast(float("nan"), zeros.dtype))
        axes = [1] * (len(flow.tensor.shape) - 1)
        zeros = self.fold(ops.broadcast_to(zeros[:, None], self.size))
        has_value = self.fold(self.count() > flow.delay)
        tensor = ops.where(
            ops.reshape(has_value, (-1, *axes)), flow.tensor, ops.reshape(zeros, (-1, *axes))
        )
        return flow.with_tensor(tensor)

    def mask_of(self, flow, mask):
        """Return the mask (B, T) that Keras gives to a layer that takes one: the argument `mask`, a
        `Flow`, or else what stands at the layer's input; None without one."""
        if mask is None:
            return getattr(flow.tensor, "_keras_mask", None)
        return None if mask.is_true else mask.tensor

    def real(self, flow, mask=None):
        """Return (B, T) booleans, True where a flow has a frame that is not masked; None if it has
        one everywhere."""
        masks = [] if mask is None else [ops.cast(mask, "bool")]
        if (count := flow.delay + flow.padding) > 0:  # zeros before the first are read as such
            masks.append(self.count() > count)
        return functools.reduce(ops.logical_and, masks) if masks else None

    def without_padding(self, flow, mask=None):
        """Return a flow's tensor, zero where it has no frame, and `real`."""
        real = self.real(flow, mask)
        if real is None:
            return flow.tensor, None
        shape = (*ops.shape(real), *[1] * (len(flow.tensor.shape) - 2))
        return ops.where(ops.reshape(real, shape), flow.tensor, 0), real

    def after(self, name, tensor, count):
        """Return a tensor (B, T, ...) after the `count` frames before it, from the state."""
        if not count:
            return tensor
        shape = (count, *tensor.shape[2:])
        seen = ops.concatenate([self.recall(name, shape, tensor.dtype), tensor], axis=1)
        self.keep(name, seen[:, -count:])
        return seen

    def aligned(self, operation, flows):
        """Return flows of kind EACH that come equally late."""
        latest = max(flow.delay for flow in flows)
        ahead = max(flow.ahead for flow in flows)
        results = []
        for index, flow in enumerate(flows):
            tensor = flow.tensor
            if late := latest - flow.delay:
                tensor, _ = self.without_padding(flow)
                tensor = self.after(self.name(operation, f"late_{index}"), tensor, late)
                tensor = tensor[:, : self.size[1]]
            changes = {"depends": flow.depends, "is_true": flow.is_true}
            results.append(Flow(tensor, EACH, latest, ahead, **changes))
        return results

    # Operations without a rule.

    def mapped(self, operation, flow_of, args, kwargs):
        """Return the results of an operation on the tensors of its flows, as flows."""
        tensors = with_tensors((args, kwargs), lambda flow: flow.tensor)
        results = operation(*tensors[0], **tensors[1])
        if self.state is None:
            last = with_tensors((args, kwargs), lambda flow: flow.tensor[-1:])
            batch = map(ops.convert_to_numpy, tree.flatten(results))
            if not _agree_with_last(batch, _numbers(operation, *last)):
                raise StreamError(
                    f"{operation.name} ({type(operation).__name__}) {MIXES}, and a stream is alone."
                )
        return tree.map_structure(flow_of, results)

    def of_frames(self, operation, args, kwargs):
        """Return the flows of an operation that acts on each frame alone, or of the layers within a
        layer."""
        key = self._names[operation.name]
        if key not in self.known:
            self.known[key] = self._look(operation, args, kwargs)
        if self.known[key] is not None:
            try:
                return self.through(self.known[key], flows_of(args, kwargs))
            except StreamError as error:
                raise StreamError(f"{operation.name}: {error}") from error
        flows = flows_of(args, kwargs)
        _require_no_padding(operation, flows)
        frame_flows = self.aligned(operation, [flow for flow in flows if flow.kind == EACH])
        depends = any(flow.depends for flow in flows) and not _counts_alone(operation)
        first = frame_flows[0]

        def flow_of(tensor):
            is_true = not depends and tensor.dtype == "bool" and self._is_true(key, tensor)
            return Flow(tensor, EACH, first.delay, first.ahead, depends=depends, is_true=is_true)

        places = iter(frame_flows)
        if len(frame_flows) == len(flows):
            tensors = with_tensors((args, kwargs), lambda flow: next(places).tensor)
            return tree.map_structure(flow_of, operation(*tensors[0], **tensors[1]))

        def one_by_one(flow):  # each frame as a row, beside the summary that it is a frame of
            return self.fold(next(places).tensor)[:, None] if flow.kind == EACH else flow.tensor

        tensors = with_tensors((args, kwargs), one_by_one)
        results = operation(*tensors[0], **tensors[1])
        return tree.map_structure(lambda tensor: flow_of(self.unfolded(tensor[:, 0])), results)

    def _is_true(self, key, tensor):
        if self.state is None:
            self.known[key, "is true"] = bool(np.all(ops.convert_to_numpy(tensor)))
        return self.known[key, "is true"]

    def _look(self, operation, args, kwargs):
        """Return None for an operation that acts on each frame alone; else the functional form of a
        layer.

        Raises:
            StreamError: if it is neither.
        """
        reason = _reason(operation, args, kwargs)
        if reason is None:
            return None
        if isinstance(operation, keras.layers.Layer):
            try:
                return _taken_apart(operation, args, kwargs)
            except StreamError:
                raise
            except Exception:  # its code needs numbers, or does not end in layers
                pass
        kind = type(operation).__name__
        way_out = " Attention pooling streams as StructuredSelfAttention." * ("oftmax" in kind)
        raise StreamError(
            f"{operation.name} ({kind}) {reason}. A stream has layers that read no later frames: "
            f"docs/streams.md lists them.{way_out}"
        )


def flows_of(args, kwargs):
    """Return the flows among arguments, in their order."""
    return [leaf for leaf in tree.flatten((args, kwargs)) if isinstance(leaf, Flow)]


def with_tensors(arguments, tensor_of):
    """Return arguments with a tensor in place of each flow."""
    return tree.map_structure(
        lambda leaf: tensor_of(leaf) if isinstance(leaf, Flow) else leaf, arguments
    )


@functools.singledispatch
def streamed(operation, walk, *args, **kwargs):
    """Return the flows of an operation that has a rule: NotImplemented if the rule does not say.

    Args:
        operation: a layer, or an operation of `keras.ops`.
        walk: the `Walk`.
        args, kwargs: the arguments of its call, with a `Flow` for each tensor.

    Raises:
        StreamError: if the operation looks ahead.
    """
    return NotImplemented


def _has_own_call(operation):
    """Return whether a user wrote the `call` of a layer; the rule of a base class does not describe
    that code."""
    owner = next(kind for kind in type(operation).__mro__ if "call" in vars(kind))
    return owner.__module__.split(".")[0] not in ("keras", "seqkeras")


def _require_no_padding(operation, flows):
    if padded := [flow for flow in flows if flow.padding]:
        raise StreamError(
            f"{operation.name}: only a convolution may read frames after ZeroPadding1D; received "
            f"{padded[0].padding} frames of zeros."
        )


def _counts_alone(operation):
    return type(operation).__name__ in ("OnesLike", "ZerosLike")


def _reason(operation, args, kwargs):
    """Return why an operation does not act on each frame alone; None if it does."""
    flows = flows_of(args, kwargs)
    if any(flow.kind == SO_FAR and flow.depends for flow in flows) and not _counts_alone(operation):
        return "reads each frame beside what is known at the end: a summary, or another input"
    length = next(flow.tensor.shape[1] for flow in flows if flow.kind == EACH)
    batch_size = next(flow.tensor.shape[0] for flow in flows if flow.kind == EACH)

    def called(tensors, first, last, rows=slice(None)):
        """Return the results for frames first to last, of recordings that end with the last."""

        def part(flow):
            if flow.kind == EACH:
                return tensors[id(flow)][rows, first : last + 1]
            by_frame = (batch_size, length, *flow.tensor.shape[1:])
            return ops.reshape(flow.tensor, by_frame)[rows, last]

        return _numbers(operation, *with_tensors((args, kwargs), part))

    def difference(tensors, size, cuts):
        """Return how the results of pieces differ from those of the whole; None if they do not."""
        ends = [*(cut - 1 for cut in cuts[1:]), size - 1]
        pieces = [called(tensors, *piece) for piece in zip(cuts, ends)]
        for result, parts in zip(called(tensors, 0, size - 1), zip(*pieces), strict=True):
            counts = [part.shape[1] for part in parts]
            if result.shape[:2] != (batch_size, size) or sum(counts) != size:
                return "gives no result for each frame"
            if not np.allclose(result, np.concatenate(parts, axis=1), **CLOSE):
                return "looks at other frames than the present one"
        return None

    tensors = {id(flow): flow.tensor for flow in flows}
    try:
        reason = difference(tensors, length, range(length))
        if reason is None and all(flow.kind == EACH for flow in flows):
            order = np.random.default_rng(0).integers(length, size=LONG)
            long = {id(flow): ops.take(flow.tensor, order, axis=1) for flow in flows}
            reason = difference(long, LONG, CUTS)
        if reason is not None:
            return reason
        whole, last = (called(tensors, 0, length - 1, slice(row, None)) for row in (0, -1))
    except Exception:  # of an operation that wants all frames
        return "can not read a recording of a single frame"
    return None if _agree_with_last(whole, last) else MIXES


def _agree_with_last(batch, last):
    """Return whether results of a batch end in the results of its last row alone."""
    return all(np.allclose(rows[-1:], row, **CLOSE) for rows, row in zip(batch, last, strict=True))


def _numbers(operation, args, kwargs):
    return [ops.convert_to_numpy(tensor) for tensor in tree.flatten(operation(*args, **kwargs))]


def _taken_apart(layer, args, kwargs):
    """Return the functional form of a layer that calls other layers."""
    flows = flows_of(args, kwargs)
    symbols = [
        KerasTensor(
            (None, None, *flow.tensor.shape[2:])
            if flow.kind == EACH
            else (None, *flow.tensor.shape[1:]),
            flow.tensor.dtype,
        )
        for flow in flows
    ]
    following = iter(symbols)
    args, kwargs = with_tensors((args, kwargs), lambda flow: next(following))
    return keras.Function(symbols, layer.call(*args, **kwargs))

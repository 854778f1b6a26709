"""The loop over the steps of a recurrent network, and its gradient derived by hand.

The networks are in `seqkeras.recurrent`, a file each; a `Network` holds its equations. They take a
padding mask. Any mask is right: a masked step keeps the state and its output is zero. The fused
operators know lengths only; `seqkeras.export.composites.recurrent` says how a node reads a mask
with gaps.

Weights follow Keras: gates in the order i, f, c, o (LSTM) and z, r, h (GRU, `reset_after`).
"""

import keras
import numpy as np
from keras import ops, tree
from keras.src.backend import rnn as keras_rnn  # a test holds its signature

from seqkeras.composites.nodes import tracing_nodes
from seqkeras.gradients import custom_gradient

# More steps than there are: Keras's loop ends with the sequence, but without a limit it would count
# the batch in a sequence that is time-major.
LONGEST = 2**31 - 1

# Steps in one turn of TensorFlow's loop, whose turn takes as long as a small step's products.
UNROLLED = 8


def recurrence(network, sequence, mask, states, weights, dropout_mask, reverse):
    """Run a recurrent network over a sequence.

    Its gradient is back-propagation through time with the least work in the loop:

        da(t)   = gradient by a(t) = U h(t-1) + c;  dz(t) that by z(t) = W x(t) + b
        dh(t-1) = U^T da(t) + what the step hands on by itself
        dx = W^T dz;  dW = sum dz x^T;  db = sum dz;  dU = sum da h(t-1)^T;  dc = sum da

    so that a weight's gradient is one product over all steps, where autodiff takes one a step. A
    masked step opens or shuts the gates that can keep a state, copies the other states, and hands
    their gradients on. It is all made of operations that can be differentiated
    again.

    Args:
        network: a `seqkeras.composites.Network`.
        sequence, mask, states, weights, dropout_mask, reverse: as it takes them.

    Returns:
        (B, T, U) outputs, zero at masked steps, and the list of final states.

    Reference: Goodfellow et al. 2016, section 10.2.2, https://www.deeplearningbook.org; dropout:
        Gal and Ghahramani 2016, section 4, https://arxiv.org/abs/1512.05287
    """
    by_name = _named(sequence, states, weights, dropout_mask)
    sequence = by_name["sequence"]
    if sequence.shape[1] == 1 and mask is None:
        inputs = _affine(sequence[:, 0], by_name["kernel"], by_name["bias"])
        states, _ = _advance(network, by_name, inputs, _states(by_name))
        return states[0][:, None], states
    x = _flipped(ops.transpose(sequence, (1, 0, 2)), reverse)  # (T, B, D)
    if mask is not None:
        real = ops.transpose(ops.cast(mask, sequence.dtype))[..., None]  # (T, B, 1)
        by_name["real"] = _flipped(real, reverse)
        x = ops.where(by_name["real"] > 0, x, ops.zeros_like(x))  # padding may be NaN
    by_name["sequence"] = x
    outputs, *states = _differentiated(network, list(by_name))(*by_name.values())
    if mask is not None:
        outputs = outputs * by_name["real"]
    return ops.transpose(_flipped(outputs, reverse), (1, 0, 2)), states


def _named(sequence, states, weights, dropout_mask):
    """Return all tensors of a network by name, in one dtype."""
    sequence, kernel, recurrent_kernel, bias = map(ops.convert_to_tensor, (sequence, *weights))
    dtype = keras.backend.result_type(sequence.dtype, kernel.dtype)
    bias, recurrent_bias = (bias[0], bias[1]) if len(bias.shape) == 2 else (bias, None)
    named = {
        "sequence": sequence,
        **{f"state_{index}": state for index, state in enumerate(states)},
        "kernel": kernel,
        "recurrent_kernel": recurrent_kernel,
        "bias": bias,
        "recurrent_bias": recurrent_bias,
        "dropout_mask": dropout_mask,
    }
    return {name: ops.cast(value, dtype) for name, value in named.items() if value is not None}


def _differentiated(network, names):
    """Return the function of the named tensors that returns h(1..T) and the final states."""

    def with_gradient(*tensors):
        by_name = dict(zip(names, tensors, strict=True))
        outputs, states, saved = _forward(network, by_name)

        def gradient(*upstream):
            d_outputs, *d_states = tree.flatten(upstream)
            gradients = _backward(network, by_name, outputs, saved, d_outputs, d_states)
            return [
                gradients[name] if name in gradients else ops.zeros_like(by_name[name])
                for name in names
            ]

        return (outputs, *states), gradient

    def differentiated_by_the_backend(*tensors):
        outputs, states, _ = _forward(network, dict(zip(names, tensors, strict=True)), save=False)
        return (outputs, *states)

    # Keras's own gradients on PyTorch are of one output only; an exported graph is never trained.
    if keras.backend.backend() == "torch" or tracing_nodes():
        return differentiated_by_the_backend
    return custom_gradient(with_gradient)


def _forward(network, by_name, save=True):
    """Return h(1..T), (T, B, U); the final states; and the values saved by the steps, (T, B, U)
    each."""
    x, kernel = by_name["sequence"], by_name["kernel"]
    if "real" in by_name and any(network.masked_gates):
        x = ops.concatenate([x, 1 - by_name["real"]], axis=-1)
        kernel = ops.concatenate(
            [kernel, mask_biases(network, by_name["recurrent_kernel"].shape[0], kernel.dtype)],
            axis=0,
        )
    inputs = _affine(x, kernel, by_name["bias"])  # (T, B, G U)

    def step(now, states):
        inputs, *real = now
        new, saved = _advance(network, by_name, inputs, states)
        if real:
            new = [
                ops.where(real[0] > 0, state, old) if copied else state
                for state, old, copied in zip(new, states, network.masked_copies, strict=True)
            ]
        return (new[0], *(saved if save else ())), new

    now = (inputs, by_name["real"]) if "real" in by_name else (inputs,)
    (outputs, *saved), states = _over_time(step, now, _states(by_name))
    return outputs, states, saved


def mask_biases(network, units, dtype):
    """Return (1, G U): what a masked step adds to the inputs of the gates."""
    half = keras.backend.standardize_dtype(dtype) == "float16"
    large = 3e4 if half else 1e9  # float16 ends at 65,504
    return ops.cast(large * np.repeat(network.masked_gates, units)[None], dtype)


def _advance(network, by_name, inputs, states):
    """Advance one step; return the new states, and what the derivatives need."""
    recurrent = ops.matmul(_dropped(states[0], by_name), by_name["recurrent_kernel"])
    if "recurrent_bias" in by_name:
        recurrent = recurrent + by_name["recurrent_bias"]
    return network.step(inputs, recurrent, list(states))


def _backward(network, by_name, outputs, saved, d_outputs, d_states):
    """Return the gradients by the given tensors, by name; the dropout mask and `real` have none."""
    x, to_state = by_name["sequence"], ops.transpose(by_name["recurrent_kernel"])
    real = by_name.get("real")

    def by_recurrent(gates, saved):
        if network.recurrent_gradients is None:
            return gates
        return network.recurrent_gradients(gates, saved)

    def step(now, gradients):
        t = now[0][0, 0]
        gradients = [gradients[0] + d_outputs[t], *gradients[1:]]
        around = [None] * len(gradients)  # the step, where it is masked
        if real is not None:
            for index in np.flatnonzero(network.masked_copies):
                through = gradients[index] * real[t]
                around[index] = gradients[index] - through
                gradients[index] = through
        now = [values[t] for values in saved]
        gates, by_states = network.gradients(gradients, now)
        by_states = list(by_states)
        recurrent = by_recurrent(gates, now)
        dz = ops.concatenate(gates, axis=-1)
        da = dz if recurrent is gates else ops.concatenate(recurrent, axis=-1)
        by_states[0] = _sum(by_states[0], _dropped(ops.matmul(da, to_state), by_name))
        return (dz,), [_sum(*pair) for pair in zip(by_states, around, strict=True)]

    length = ops.shape(x)[0]
    times = length - 1 - ops.reshape(ops.arange(length), (-1, 1, 1))
    (dz,), d_states = _over_time(step, (times,), d_states)  # (T, B, G U), the last step first
    gates = ops.split(dz, len(network.masked_gates), axis=-1)
    recurrent = by_recurrent(gates, [_flipped(values) for values in saved])
    da = dz if recurrent is gates else ops.concatenate(recurrent, axis=-1)
    before = ops.concatenate([by_name["state_0"][None], outputs[:-1]], axis=0)  # h(0..T-1)
    d_x = ops.matmul(_rows(dz), ops.transpose(by_name["kernel"]))
    derivatives = {
        "sequence": _flipped(ops.reshape(d_x, ops.shape(x))),
        **{f"state_{index}": d_state for index, d_state in enumerate(d_states)},
        "kernel": _product(_flipped(x), dz),
        "bias": _total(dz),
        "recurrent_kernel": _product(_flipped(_dropped(before, by_name)), da),
    }
    return derivatives | ({"recurrent_bias": _total(da)} if "recurrent_bias" in by_name else {})


def _product(x, d):
    """Return the sum of x d^T over all steps and rows."""
    return ops.matmul(ops.transpose(_rows(x)), _rows(d))


def _total(d):
    """Return the sum over all steps and rows, as a product, which is faster than a sum."""
    d = _rows(d)
    return ops.matmul(ops.transpose(ops.ones_like(d[:, :1])), d)[0]


def _over_time(step, sequences, states):
    """Return a loop over time-major sequences: the (T, B, ·) outputs, and the list of final
    states."""
    length = sequences[0].shape[0]
    whole = length - length % UNROLLED if keras.backend.backend() == "tensorflow" and length else 0
    if not whole:
        return _loop(step, sequences, states, length)

    def several_steps(now, states):
        outputs = []
        for inputs in zip(*(ops.unstack(rows, UNROLLED) for rows in now), strict=True):
            made, states = step(inputs, states)
            outputs.append(made)
        return tuple(ops.stack(steps) for steps in zip(*outputs, strict=True)), states

    shape = (whole // UNROLLED, UNROLLED)
    turns = [ops.reshape(x[:whole], (*shape, *ops.shape(x)[1:])) for x in sequences]
    outputs, states = _loop(several_steps, turns, states, shape[0])
    outputs = [ops.reshape(x, (whole, *ops.shape(x)[2:])) for x in outputs]
    if whole < length:
        rest = [x[whole:] for x in sequences]
        others, states = _loop(step, rest, states, length - whole)
        outputs = [ops.concatenate(pair, axis=0) for pair in zip(outputs, others, strict=True)]
    return outputs, states


def _loop(step, sequences, states, length):
    """Return Keras's loop over a number of steps; None if the number is not known yet."""
    _, outputs, states = keras_rnn(
        step, tuple(sequences), list(states), time_major=True, input_length=length or LONGEST
    )
    return outputs, list(states)


def _states(by_name):
    return [by_name[name] for name in by_name if name.startswith("state_")]


def _dropped(state, by_name):
    """Return the state as it enters the recurrent product."""
    return state * by_name["dropout_mask"] if "dropout_mask" in by_name else state


def _affine(x, kernel, bias):
    """Return x W + b, as one product of matrices."""
    product = ops.matmul(_rows(x), kernel) + bias
    return ops.reshape(product, (*ops.shape(x)[:-1], kernel.shape[-1]))


def _rows(x):
    return ops.reshape(x, (-1, x.shape[-1]))


def _flipped(x, reverse=True):
    """Return the tensor with its first axis reversed if `reverse`."""
    return ops.flip(x, axis=0) if reverse else x


def _sum(*terms):
    """Return the sum of the terms that are not None."""
    first, *others = [term for term in terms if term is not None]
    return sum(others, start=first)

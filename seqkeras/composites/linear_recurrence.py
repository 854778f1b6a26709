"""The elementwise linear recurrence, computed in parallel over the sequence.

A sequence is cut into chunks, and all chunks are stepped through at once, each from zero; what
enters a chunk is then added. With A and H the products and the states within chunk n,

    A(j) = a(j) A(j-1)        H(j) = a(j) H(j-1) + b(j)
    h(j) = H(j) + A(j) * end(n-1)        end(n) = H(C) + A(C) * end(n-1)

where `end` is again a linear recurrence, C times shorter. Nothing is divided by.
"""

import keras
from keras import ops, tree

from seqkeras.composites.nodes import composite, tracing_nodes
from seqkeras.composites.recurrent import keras_rnn
from seqkeras.gradients import custom_gradient
from seqkeras.tensors import Tensor
from seqkeras.values import is_symbol

CHUNK = 16  # C: of 8, 16 and 32 none was faster, on TensorFlow, JAX and PyTorch


@composite
def linear_recurrence(
    a: Tensor, b: Tensor, mask: Tensor | None, initial_state: Tensor, *, reverse: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the states of a linear recurrence, elementwise.

        h(t) = a(t) * h(t-1) + b(t)

    and backwards, the same recurrence from the last step to the first:

        dh(t) = upstream(t) + a(t+1) * dh(t+1)
        da(t) = dh(t) * h(t-1)        db(t) = dh(t)        dh(0) = a(1) * dh(1)

    Args:
        a: (B, T, U) factors; where they are larger than 1, products of them may overflow even if
            the states do not.
        b: (B, T, U).
        mask: (B, T) booleans, True for real steps, or None.
        initial_state: (B, U), h(0).
        reverse: from the last step to the first; outputs stay in the order of the inputs.

    Returns:
        (B, T, U) outputs, zero at masked steps, and the (B, U) final state.

    Reference: Blelloch 1990, section 1.4, https://www.cs.cmu.edu/~guyb/papers/Ble93.pdf

    Example:
        >>> from keras import ops
        >>> from seqkeras.composites import linear_recurrence
        >>> b = ops.ones((1, 3, 1))
        >>> outputs, final = linear_recurrence(0.5 * b, b, None, ops.zeros((1, 1)))
        >>> ops.convert_to_numpy(outputs)[0, :, 0].tolist(), float(final[0, 0])
        ([1.0, 1.5, 1.75], 1.75)
    """
    if mask is not None:
        real = mask[..., None]
        a, b = ops.where(real, a, ops.ones_like(a)), ops.where(real, b, ops.zeros_like(b))
    h = _differentiable(a, b, initial_state, reverse)
    final = h[:, 0] if reverse else h[:, -1]
    return (h if mask is None else ops.where(real, h, ops.zeros_like(h))), final


def _differentiable(a, b, initial_state, reverse):
    # Keras's own gradients on PyTorch have no second derivative, and are not faster there; an
    # exported graph is never trained.
    if keras.backend.backend() == "torch" or tracing_nodes():
        return _scan(a, b, initial_state, reverse)

    @custom_gradient
    def recurrence(a, b, initial_state):
        h = _scan(a, b, initial_state, reverse)

        def gradient(*upstream):
            [upstream] = tree.flatten(upstream)
            zeros = ops.zeros_like(initial_state)
            after = _before(a, zeros, not reverse)
            db = _differentiable(after, upstream, zeros, not reverse)
            da = db * _before(h, initial_state, reverse)
            first = -1 if reverse else 0
            return da, db, a[:, first] * db[:, first]

        return h, gradient

    return recurrence(a, b, initial_state)


def _scan(a, b, initial_state, reverse):
    """Return (B, T, U) states."""
    batch_size, length, units = ops.shape(a)
    if is_symbol(length):
        return b
    static = isinstance(length, int)
    chunk = min(length, CHUNK) if static else CHUNK
    missing = chunk - 1 - (length - 1) % chunk  # -length % chunk, which ONNX takes the C way
    if not static or missing:
        behind = [(0, 0), (0, missing), (0, 0)]
        a, b = ops.pad(a, behind, constant_values=1), ops.pad(b, behind)
    chunks = (batch_size, (length + missing) // chunk, chunk, units)
    A, H = _within_chunks(ops.reshape(a, chunks), ops.reshape(b, chunks), reverse)
    entering = initial_state[:, None]
    if not static or length > chunk:
        last = 0 if reverse else -1
        scan = _scan if static else _loop
        ends = scan(A[:, :, last], H[:, :, last], initial_state, reverse)  # (B, n, U)
        entering = _before(ends, initial_state, reverse)
    h = H + A * entering[:, :, None]  # (B, n, C, U)
    return ops.reshape(h, (batch_size, length + missing, units))[:, :length]


def _within_chunks(a, b, reverse):
    """Return A and H, (B, n, C, U) each."""
    order = slice(None, None, -1 if reverse else 1)
    steps = zip(*(ops.unstack(tensor, num=a.shape[2], axis=2)[order] for tensor in (a, b)))
    first_a, first_b = next(steps)
    A, H = [first_a], [first_b]
    for a, b in steps:
        A.append(a * A[-1])
        H.append(a * H[-1] + b)
    return ops.stack(A[order], axis=2), ops.stack(H[order], axis=2)


def _loop(a, b, initial_state, reverse):
    """Return (B, n, U) states in a sequential loop, for a number of chunks unknown while
    tracing."""

    def step(inputs, states):
        a, b = ops.split(inputs, 2, axis=-1)
        h = a * states[0] + b
        return h, [h]

    inputs = ops.concatenate([a, b], axis=-1)
    _, outputs, _ = keras_rnn(step, inputs, [initial_state], go_backwards=reverse)
    return ops.flip(outputs, axis=1) if reverse else outputs


def _before(x, first, reverse):
    """Return what x, (B, T, U), was one step before; `first` (B, U) at the first step."""
    first = first[:, None]
    if reverse:
        return ops.concatenate([x[:, 1:], first], axis=1)
    return ops.concatenate([first, x[:, :-1]], axis=1)

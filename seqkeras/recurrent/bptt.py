"""Back-propagation through time, derived by hand for the simple recurrent network.

    a(t) = W x(t) + U h(t-1) + b        h(t) = tanh(a(t))
    o(t) = c + V h(t)                   ŷ(t) = softmax(o(t))
    L = sum over t of w(t) L(t)         L(t) = -log of ŷ(t) at the target y(t)

To read with the book, not for training: `SimpleRNN` and `Dense` do the same by autodiff. Pure
functions of tensors. Steps are counted as in the book: `h[t]` is h(t), `h[0]` the initial state,
`x[t]` the input of step t, from 1 to T. Rows of a batch are row vectors, so U h is h Uᵀ. W and U
are those of `SimpleRNN`; the book calls them U and W.

Left out: lengths that are unknown until a graph runs.

Reference: Goodfellow et al. 2016, sections 10.2 and 10.2.2, equations 10.8 to 10.11 and 10.17 to
10.28, https://www.deeplearningbook.org/contents/rnn.html
"""

from typing import Any, NamedTuple

from keras import ops

from seqkeras.tensors import Tensor

__all__ = [
    "Activations",
    "Gradients",
    "Parameters",
    "backward",
    "every_step",
    "forward",
    "last_step",
    "loss",
]


class Parameters(NamedTuple):
    """The matrices and biases: D wide inputs, `units` states, K classes.

    Attributes:
        W: (units, D), the transpose of SimpleRNN's kernel.
        U: (units, units), the transpose of SimpleRNN's recurrent kernel.
        V: (K, units), the transpose of Dense's kernel.
        b: (units,).
        c: (K,).

    Example:
        >>> from keras import ops
        >>> from seqkeras.recurrent.bptt import Parameters
        >>> D, units, K = 4, 3, 2
        >>> W, U, V = ops.ones((units, D)), ops.ones((units, units)), ops.ones((K, units))
        >>> tuple(Parameters(W, U, V, b=ops.zeros((units,)), c=ops.zeros((K,))).V.shape)
        (2, 3)
    """

    W: Any
    U: Any
    V: Any
    b: Any
    c: Any


class Activations(NamedTuple):
    """The results of `forward`, which `backward` needs.

    Attributes:
        h: (B, T + 1, units) states, the initial one first.
        o: (B, T, K) logits.

    Example:
        >>> from keras import ops
        >>> from seqkeras.recurrent.bptt import Parameters, forward
        >>> one, zero = ops.ones((1, 1)), ops.zeros((1,))
        >>> parameters = Parameters(one, one, one, zero, zero)
        >>> h, o = forward(parameters, inputs=ops.ones((2, 5, 1)), initial_state=ops.zeros((2, 1)))
        >>> tuple(h.shape), tuple(o.shape)  # h holds h(0) too
        ((2, 6, 1), (2, 5, 1))
    """

    h: Any
    o: Any


class Gradients(NamedTuple):
    """Gradients of the loss.

    Attributes:
        parameters: `Parameters`, the gradient by each.
        initial_state: (B, units), by h(0).
        inputs: (B, T, D), by x.

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.recurrent.bptt import Parameters, backward, forward
        >>> one, x, targets = ops.ones((1, 1)), ops.zeros((1, 3, 1)), np.array([[0, 1, 0]])
        >>> V, b, c = ops.ones((2, 1)), ops.zeros((1,)), ops.zeros((2,))
        >>> parameters = Parameters(one, one, V, b, c)
        >>> activations = forward(parameters, x, initial_state=ops.zeros((1, 1)))
        >>> gradients = backward(parameters, x, activations, targets, weights=ops.ones((1, 3)))
        >>> tuple(gradients.parameters.V.shape), tuple(gradients.inputs.shape)
        ((2, 1), (1, 3, 1))
    """

    parameters: Parameters
    initial_state: Any
    inputs: Any


def every_step(mask: Tensor) -> Tensor:
    """Return (B, T) floats: the weights w that count every real step once.

    Args:
        mask: (B, T) booleans, True for real steps.

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.recurrent.bptt import every_step
        >>> ops.convert_to_numpy(every_step(np.array([[True, True, False]]))).tolist()
        [[1.0, 1.0, 0.0]]
    """
    return ops.cast(mask, "float32")


def last_step(mask: Tensor) -> Tensor:
    """Return (B, T) floats: the weights w that count only the last real step of each row.

    Args:
        mask: (B, T) booleans, True for real steps.

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.recurrent.bptt import last_step
        >>> ops.convert_to_numpy(last_step(np.array([[True, True, False]]))).tolist()
        [[0.0, 1.0, 0.0]]
    """
    real = ops.cast(mask, "int32")
    real_steps_from_here = ops.flip(ops.cumsum(ops.flip(real, axis=1), axis=1), axis=1)
    return ops.cast(ops.logical_and(mask, real_steps_from_here == 1), "float32")


def forward(
    parameters: Parameters, inputs: Tensor, initial_state: Tensor, mask: Tensor | None = None
) -> Activations:
    """Run the network over a sequence.

        a(t) = W x(t) + U h(t-1) + b                                    (10.8)
        h(t) = tanh(a(t)); where the mask is False, h(t) = h(t-1)       (10.9)
        o(t) = c + V h(t)                                               (10.10)

    Args:
        parameters: `Parameters`.
        inputs: (B, T, D).
        initial_state: (B, units), h(0).
        mask: (B, T) booleans, True for real steps, or None.

    Returns:
        `Activations`.

    Raises:
        ValueError: if shapes do not fit, or T is unknown.

    Reference: Goodfellow et al. 2016, section 10.2, https://www.deeplearningbook.org

    Example:
        >>> from keras import ops
        >>> from seqkeras.recurrent.bptt import Parameters, forward
        >>> one, zero = ops.ones((1, 1)), ops.zeros((1,))
        >>> parameters = Parameters(W=one, U=one, V=one, b=zero, c=one[0])
        >>> activations = forward(parameters, ops.zeros((1, 3, 1)), initial_state=ops.zeros((1, 1)))
        >>> ops.convert_to_numpy(activations.o)[0, :, 0].tolist()  # h stays 0, and o is c
        [1.0, 1.0, 1.0]
    """
    W, U, V, b, c = parameters = Parameters(*map(ops.convert_to_tensor, parameters))
    inputs, initial_state = map(ops.convert_to_tensor, (inputs, initial_state))
    _require_shapes("forward", parameters, inputs, initial_state=initial_state, mask=mask)

    h = [initial_state]
    for t, x in enumerate(ops.unstack(inputs, axis=1), start=1):
        a = x @ ops.transpose(W) + h[t - 1] @ ops.transpose(U) + b
        h.append(_where_real(mask, t, ops.tanh(a), h[t - 1]))
    h = ops.stack(h, axis=1)  # (B, T + 1, units)
    return Activations(h, c + h[:, 1:] @ ops.transpose(V))


def loss(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted sum of the cross-entropies of all steps and rows.

        L = sum over t of w(t) L(t)         L(t) = -log of softmax(o(t)) at y(t)

    Args:
        logits: (B, T, K), o.
        targets: (B, T) integers, y.
        weights: (B, T), w: `every_step(mask)`, `last_step(mask)`, or any other numbers.

    Returns:
        a number, L.

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.recurrent.bptt import loss
        >>> logits, targets = ops.zeros((1, 2, 4)), np.array([[3, 0]])
        >>> value = loss(logits, targets, weights=np.array([[1.0, 0.0]]))
        >>> bool(np.isclose(float(value), np.log(4)))  # one step counts, among four classes
        True
    """
    one_hot = ops.one_hot(targets, logits.shape[-1], dtype=logits.dtype)
    losses = -ops.sum(one_hot * ops.log_softmax(logits), axis=-1)  # (B, T)
    return ops.sum(ops.cast(weights, logits.dtype) * losses)


def backward(
    parameters: Parameters,
    inputs: Tensor,
    activations: Activations,
    targets: Tensor,
    weights: Tensor,
    mask: Tensor | None = None,
    chunk_length: int | None = None,
) -> Gradients:
    """Return the gradient of `loss`, from the last step to the first.

        ∇o(t) = w(t) (ŷ(t) - one_hot(y(t)))                             (10.18)
        ∇h(T) = Vᵀ ∇o(T)                                                (10.19)
        ∇h(t) = Uᵀ diag(1 - h(t+1)²) ∇h(t+1) + Vᵀ ∇o(t)                 (10.21)
        ∇a(t) = diag(1 - h(t)²) ∇h(t)
        ∇c = sum over t of ∇o(t)                                        (10.22)
        ∇b = sum over t of ∇a(t)                                        (10.23)
        ∇V = sum over t of ∇o(t) h(t)ᵀ                                  (10.24)
        ∇U = sum over t of ∇a(t) h(t-1)ᵀ                                (10.26)
        ∇W = sum over t of ∇a(t) x(t)ᵀ                                  (10.28)
        ∇x(t) = Wᵀ ∇a(t)        ∇h(0) = Uᵀ ∇a(1)

    Notation: the book's w(t) is one (10.17), and it has no name for ∇a. A masked step, h(t) =
    h(t-1), has no ∇a, and hands ∇h(t) on as it is.

    Args:
        parameters, inputs, mask: in the form that `forward` takes.
        activations: the result of `forward`.
        targets, weights: in the form that `loss` takes.
        chunk_length: steps of a chunk in truncated back-propagation: the sequence is cut into
            chunks, and no gradient flows from one into the chunk before it. None: no cut.

    Returns:
        `Gradients`.

    Raises:
        ValueError: if shapes do not fit, T is unknown, or chunk_length is not positive.

    Reference: Goodfellow et al. 2016, section 10.2.2, https://www.deeplearningbook.org; truncation:
    Williams and Peng 1990, https://doi.org/10.1162/neco.1990.2.4.490

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.recurrent.bptt import Parameters, backward, forward
        >>> one, x, targets = ops.ones((1, 1)), ops.zeros((1, 3, 1)), np.array([[0, 0, 0]])
        >>> V, b, c = ops.ones((2, 1)), ops.zeros((1,)), ops.zeros((2,))
        >>> parameters = Parameters(one, one, V, b, c)
        >>> activations = forward(parameters, x, initial_state=ops.zeros((1, 1)))
        >>> gradients = backward(parameters, x, activations, targets, weights=ops.ones((1, 3)))
        >>> ops.convert_to_numpy(gradients.parameters.c).tolist()  # 0.5 for each of three steps
        [-1.5, 1.5]
    """
    if chunk_length is not None and chunk_length < 1:
        raise ValueError(f"backward: chunk_length must be positive; received {chunk_length}.")
    W, U, V, _, _ = parameters = Parameters(*map(ops.convert_to_tensor, parameters))
    inputs, (h, o) = ops.convert_to_tensor(inputs), activations
    _require_shapes("backward", parameters, inputs, mask=mask, targets=targets, weights=weights)

    one_hot = ops.one_hot(targets, o.shape[-1], dtype=o.dtype)
    grad_o = ops.cast(weights, o.dtype)[..., None] * (ops.softmax(o) - one_hot)  # (B, T, K)
    grad_h_by_o = grad_o @ V  # (B, T, units)
    derivative = 1 - h * h  # of tanh: (B, T + 1, units)

    grad_a = []
    grad_h = ops.zeros_like(h[:, 0])  # the part of the gradient from the steps after t
    for t in reversed(range(1, h.shape[1])):
        grad_h = grad_h + grad_h_by_o[:, t - 1]
        grad_a.append(_where_real(mask, t, derivative[:, t] * grad_h, ops.zeros_like(grad_h)))
        grad_h = _where_real(mask, t, grad_a[-1] @ U, grad_h)
        if chunk_length and t > 1 and (t - 1) % chunk_length == 0:  # t begins a chunk
            grad_h = ops.zeros_like(grad_h)
    grad_a = ops.stack(grad_a[::-1], axis=1)  # (B, T, units)

    by_parameters = Parameters(
        W=ops.einsum("btu,btd->ud", grad_a, inputs),
        V=ops.einsum("btk,btu->ku", grad_o, h[:, 1:]),
        U=ops.einsum("btu,btv->uv", grad_a, h[:, :-1]),
        b=ops.sum(grad_a, axis=(0, 1)),
        c=ops.sum(grad_o, axis=(0, 1)),
    )
    return Gradients(by_parameters, grad_h, grad_a @ W)


def _where_real(mask, t, real, masked):
    return real if mask is None else ops.where(mask[:, t - 1, None], real, masked)


def _require_shapes(function, parameters, inputs, **others):
    """Raise a ValueError that names every shape that does not fit to W, V and the inputs."""
    if len(inputs.shape) != 3 or inputs.shape[1] is None:
        raise ValueError(
            f"{function}: inputs must have shape (batch, length, dim) with a known length; "
            f"received {tuple(inputs.shape)}."
        )
    batch_size, length, dim = inputs.shape
    units, classes = parameters.b.shape[0], parameters.c.shape[0]
    expected = {
        "W": (units, dim),
        "V": (classes, units),
        "U": (units, units),
        "initial_state": (batch_size, units),
        "mask": (batch_size, length),
        "targets": (batch_size, length),
        "weights": (batch_size, length),
    }
    arrays = parameters._asdict() | {
        name: array for name, array in others.items() if array is not None
    }
    wrong = [
        f"{name} must have shape {shape}; received {tuple(arrays[name].shape)}"
        for name, shape in expected.items()
        if name in arrays and tuple(arrays[name].shape) != shape
    ]
    if wrong:
        raise ValueError(f"{function}: {'; '.join(wrong)}.")

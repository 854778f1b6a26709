"""The simple recurrent network."""

from keras import ops

from seqkeras.composites.nodes import composite
from seqkeras.composites.recurrent import Equations, recurrence


@composite
def rnn(
    sequence,
    mask,
    initial_state,
    kernel,
    recurrent_kernel,
    bias,
    dropout_mask=None,
    *,
    reverse=False,
):
    """Simple recurrent network over a sequence.

        h(t) = tanh(b + U x(t) + W h(t-1))

    and backwards, for a(t) = b + U x(t) + W h(t-1), the argument of the tanh:

        da(t) = dh(t) * (1 - h(t)^2)

    Args:
        sequence: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None.
        initial_state: (B, U).
        kernel: (D, U), the U of the formula, transposed.
        recurrent_kernel: (U, U), its W, transposed.
        bias: (U,).
        dropout_mask: (B, U) factors of h(t-1) in its product, the same at every step, or None.
        reverse: from the last step to the first; outputs stay in the order of the inputs.

    Returns:
        (B, T, U) outputs, zero at masked steps, and the (B, U) final state.

    Reference: Elman 1990, https://doi.org/10.1207/s15516709cog1402_1
    """
    outputs, [h] = recurrence(
        EQUATIONS,
        sequence,
        mask,
        [initial_state],
        [kernel, recurrent_kernel, bias],
        dropout_mask=dropout_mask,
        reverse=reverse,
    )
    return outputs, h


def _step(inputs, recurrent, states):
    h = ops.tanh(inputs + recurrent)
    return [h], [h]


def _gradients(gradients, saved):
    [dh], [h] = gradients, saved
    return [dh * (1 - h * h)], [None]


EQUATIONS = Equations(_step, _gradients)

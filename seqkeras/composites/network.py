"""A recurrent network as a composite: over a sequence, and over it from both ends."""

import dataclasses
import functools
from collections.abc import Callable

import keras
from keras import ops

from seqkeras.composites.consistency import require_consistent, require_entries
from seqkeras.composites.cudnn import fused
from seqkeras.composites.nodes import composite
from seqkeras.composites.recurrent import recurrence


@dataclasses.dataclass(frozen=True)
class Network:
    """The equations of a recurrent network with G gates: one step, and its derivatives.

    Called, it is the network over a sequence, a composite of its name; `bidirectional` is the one
    of both directions. Each becomes one node of an exported graph if
    `seqkeras.export.composites.layouts` has a layout of that name, and leaves op by op if not.

    Args:
        name: name of the composite.
        step: (inputs, recurrent, states, *activations) -> (new states, saved), the formula: inputs
            are W x(t) + b and recurrent is U h(t-1) [+ c], (B, G U) each; the states (B, U) each, h
            first; saved is what the derivatives need, (B, U) each. The activations have defaults,
            which the derivatives belong to.
        gradients: (gradients by the new states, saved) -> (gradients by the gates of the inputs, by
            the old states but for the way through the recurrent product, None for zeros).
        recurrent_gradients: (gradients by the gates of the inputs, saved) -> by the gates of the
            recurrent product; None if they are the same.
        masked_gates: for each of the G gates what it is at a masked step: 1 open, -1 shut, 0 as
            computed. Zeros with True in masked_copies are right for every network.
        masked_copies: for each state, whether a masked step must copy it, because the gates that
            are open or shut do not keep it.
        fused: name of Keras's own function that reaches cuDNN, "lstm" or "gru"; None for none.

    Call arguments:
        sequence: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None.
        states: list of (B, U), those before the first step, h first.
        weights: the kernel (D, G U), the recurrent kernel (U, G U), and the bias, (G U,) or, for b
            and c, (2, G U).
        dropout_mask: (B, U) factors of h(t-1) in the recurrent product, or None.
        reverse: from the last step to the first; outputs stay in the order of the inputs.

    Returns:
        (B, T, U) outputs, zero at masked steps, and each final state, (B, U).

    Raises:
        ValueError: if masked_gates or masked_copies hold something else; at the first call, if the
            functions take or return another number of gates or states, or a masked step changes a
            state. `check_network` compares the numbers and the gradients too.

    Reference: Goodfellow et al. 2016, section 10.2.2, https://www.deeplearningbook.org

    Example:
        >>> from keras import ops
        >>> from seqkeras.composites import Network
        >>> def step(inputs, recurrent, states):  # h(t) = W x(t) + b + U h(t-1)
        ...     return [inputs + recurrent], []
        >>> def gradients(by_states, saved):
        ...     return [by_states[0]], [None]
        >>> one, zero = ops.ones((1, 1)), ops.zeros((1,))
        >>> adder = Network("adder", step, gradients)
        >>> outputs, final = adder(ops.ones((1, 4, 1)), None, [0 * one], [one, one, zero])
        >>> float(final[0, 0])
        4.0
    """

    name: str
    step: Callable
    gradients: Callable
    recurrent_gradients: Callable | None = None
    masked_gates: tuple = (0,)
    masked_copies: tuple = (True,)
    fused: str | None = None

    def __post_init__(self):
        require_entries(self)

    def require_consistent(self, units: int, dtype: str) -> None:
        """Raise a ValueError if the functions and the tuples of the network do not fit together.

        The first call for a size and a dtype takes one step; later calls cost nothing.

        Args:
            units: size of each state, U.
            dtype: the dtype of the step.
        """
        if (units, dtype) not in self._consistent:
            require_consistent(self, units, dtype)
            self._consistent.add((units, dtype))

    @functools.cached_property
    def _consistent(self):
        return set()

    def __call__(self, sequence, mask, states, weights, dropout_mask=None, *, reverse=False):
        """Run the network over a sequence.

        Args:
            sequence: (B, T, D).
            mask: (B, T) booleans, True for real steps, or None.
            states: list of (B, U), those before the first step, h first.
            weights: the kernel (D, G U), the W of the formula, transposed; the recurrent kernel
                (U, G U), its U; and the bias, (G U,), or (2, G U) for b and c.
            dropout_mask: (B, U) factors of h(t-1) in the recurrent product, the same at every step,
                or None.
            reverse: from the last step to the first; outputs stay in the order of the inputs.

        Returns:
            (B, T, U) outputs, zero at masked steps, and each final state, (B, U).
        """
        states, weights = list(states), list(weights)
        return self._run(sequence, mask, states, weights, dropout_mask, reverse=reverse)

    @functools.cached_property
    def _run(self):
        def run(sequence, mask, states, weights, dropout_mask=None, *, reverse):
            results = None
            kernel = ops.convert_to_tensor(weights[1])
            self.require_consistent(kernel.shape[0], keras.backend.standardize_dtype(kernel.dtype))
            if self.fused and dropout_mask is None:
                results = fused(self.fused, sequence, mask, states, weights, reverse)
            outputs, states = results or recurrence(
                self, sequence, mask, states, weights, dropout_mask, reverse
            )
            return outputs, *states

        return composite(run, name=self.name, in_loops=False)

    @functools.cached_property
    def bidirectional(self):
        """The network in both directions, side by side: output(t) = [forward h(t); backward h(t)].

        Call arguments:
            sequence, mask: see the network's call.
            forward_states, forward_weights, backward_states, backward_weights: lists.

        Returns:
            (B, T, 2U) outputs, and the final states, the forward ones first.

        Reference: Schuster and Paliwal 1997, https://doi.org/10.1109/78.650093
        """

        def run(sequence, mask, forward_states, forward_weights, backward_states, backward_weights):
            forward, *final = self(sequence, mask, forward_states, forward_weights)
            backward, *other_final = self(
                sequence, mask, backward_states, backward_weights, reverse=True
            )
            return ops.concatenate([forward, backward], axis=-1), *final, *other_final

        return composite(run, name=f"bidirectional_{self.name}", in_loops=False)

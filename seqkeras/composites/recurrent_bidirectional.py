"""Two recurrent networks that read a sequence from its two ends."""

from keras import ops

from seqkeras.composites.nodes import composite
from seqkeras.composites.recurrent_gru import gru
from seqkeras.composites.recurrent_lstm import lstm
from seqkeras.composites.recurrent_rnn import rnn


@composite
def bidirectional(sequence, mask, forward, backward, *, cell):
    """A recurrent composite and a second one that reads backwards, side by side.

        output(t) = [forward h(t); backward h(t)]

    Args:
        sequence: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None.
        forward, backward: lists of the other tensors that the composite takes: states, weights.
        cell: which composite, "rnn", "lstm" or "gru".

    Returns:
        (B, T, 2U) outputs [forward; backward], and the final states, the forward ones first.

    Reference: Schuster and Paliwal 1997, https://doi.org/10.1109/78.650093
    """
    run = {"rnn": rnn, "lstm": lstm, "gru": gru}[cell]
    forward_outputs, *forward_states = run(sequence, mask, *forward)
    backward_outputs, *backward_states = run(sequence, mask, *backward, reverse=True)
    outputs = ops.concatenate([forward_outputs, backward_outputs], axis=-1)
    return outputs, *forward_states, *backward_states

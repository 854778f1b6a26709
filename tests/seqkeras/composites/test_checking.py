"""Networks whose parts do not fit together are refused; networks that compute wrong are found."""

import dataclasses
import re

import numpy as np
import pytest
from keras import ops

from seqkeras.composites import Network, check_network
from seqkeras.recurrent import GRUCell, LSTMCell, SimpleRNNCell
from seqkeras.recurrent.cell import GatedCell
from tests.arrays import BACKEND, floats
from tests.refusals import refusals

U = 7


def _step(inputs, recurrent, states, activation=ops.tanh, gate_activation=ops.sigmoid):
    """One step of the minimal gated unit, Zhou et al. 2016, with f behind the product."""
    [h] = states
    (x_f, x_g), (h_f, n) = ops.split(inputs, 2, axis=-1), ops.split(recurrent, 2, axis=-1)
    f = gate_activation(x_f + h_f)
    g = activation(x_g + f * n)
    return [(1 - f) * h + f * g], [f, g, n, h]


def _gradients(gradients, saved):
    [dh], (f, g, n, h) = gradients, saved
    da_g = dh * f * (1 - g * g)
    return [(dh * (g - h) + da_g * n) * f * (1 - f), da_g], [dh * (1 - f)]


def _recurrent_gradients(gates, saved):
    return [gates[0], gates[1] * saved[0]]


MGU = Network(
    "mgu",
    _step,
    _gradients,
    _recurrent_gradients,
    masked_gates=(-1, 0),
    masked_copies=(False,),
)
NETWORKS = {
    network.name: network
    for network in (MGU, LSTMCell.network, GRUCell.network, SimpleRNNCell.network)
}
LSTM = LSTMCell.network


def built(network=MGU, **changes):
    """A function that builds a cell of a network with changed arguments."""

    class MGUCell(GatedCell):
        pass

    def build():
        MGUCell.network = dataclasses.replace(network, **changes)
        MGUCell(U).build((None, 3))

    return build


def checked(network=MGU, **changes):
    return lambda: check_network(dataclasses.replace(network, **changes))


def by_gate(index, factor):
    """`_gradients` with one gate's gradient multiplied."""

    def gradients(by_states, saved):
        gates, by_old = _gradients(by_states, saved)
        gates[index] = gates[index] * factor
        return gates, by_old

    return gradients


def half_where_masked(by_states, saved):
    gates, _ = _gradients(by_states, saved)
    f = saved[0]
    return gates, [by_states[0] * ops.where(f < 1e-6, 0.5 * ops.ones_like(f), 1 - f)]


COUNTS = "masked_gates must have one entry for each gate, and masked_copies one for each state"
KEPT = 'Network "{}": a masked step must keep every state. With masked_gates={} it changes'
SAFE = "Zeros in masked_gates with True in masked_copies are right for every network."

test_what_has_no_entries_is_refused = refusals(
    (
        lambda: Network("n", _step, _gradients, masked_gates=2),
        'Network "n": masked_gates must be a tuple that holds for each gate 1, -1 or 0; received 2',
    ),
    (lambda: Network("n", _step, _gradients, masked_gates=()), "1, -1 or 0; received ()."),
    (lambda: Network("n", _step, _gradients, masked_gates=(0, 2)), "received (0, 2)."),
    (
        lambda: Network("n", _step, _gradients, masked_copies=(None,)),
        "masked_copies must be a tuple that holds for each state True or False; received (None,).",
    ),
)
test_parts_that_do_not_fit_are_refused_when_the_cell_is_built = refusals(
    (
        built(masked_gates=(0,)),
        f'Network "mgu": {COUNTS}; received masked_gates=(0,) and masked_copies=(False,), with '
        "which step raises ",
    ),
    (built(masked_gates=(0, 0, 0, 0)), f"{COUNTS}; received masked_gates=(0, 0, 0, 0) and "),
    (built(masked_copies=(True, True)), "with which step raises ValueError: too many values to "),
    (built(SimpleRNNCell.network, masked_gates=(0, 0)), "[(2, 7)], ...received [(2, 14)]."),
    (built(step=lambda *args: _step(*args)[0]), "step must return a pair, ...received one list of"),
    (
        built(gradients=lambda by_states, saved: _gradients(by_states, saved[1:])),
        "gradients raises ValueError: not enough values to unpack",
    ),
    (
        built(gradients=lambda by_states, saved: _gradients(by_states, saved)[0][0]),
        "gradients must return a pair, ...received one",
    ),
    (
        built(gradients=lambda by_states, saved: (_gradients(by_states, saved)[0][:1], [None])),
        "gradients must return a list with one gradient for each gate, 2 of shape (2, 7); received "
        "a list of 1: [(2, 7)].",
    ),
    (
        built(gradients=lambda by_states, saved: (_gradients(by_states, saved)[0], [])),
        "gradients must return a list with one gradient for each old state, 1 of shape (2, 7) or "
        "None; received a list of 0: [].",
    ),
    (
        built(gradients=lambda by_states, saved: (by_states[0], [None])),
        "one gradient for each gate, 2 of shape (2, 7); received one ",
    ),
    (
        built(recurrent_gradients=lambda gates, saved: [gates[0], None]),
        "recurrent_gradients must return a list with one gradient for each gate, 2 of shape "
        "(2, 7); received a list of 2: [(2, 7), None].",
    ),
)
test_a_masked_step_that_changes_a_state_is_refused = refusals(
    (built(masked_gates=(1, 0)), f"{KEPT.format('mgu', '(1, 0)')} state 0 by "),
    (built(masked_gates=(0, 0)), f"masked_copies=(False,) does not copy it. {SAFE}"),
    (built(LSTM, masked_copies=(False, False)), f"{KEPT.format('lstm', '(-1, 1, 0, 0)')} state 0"),
    (built(LSTM, masked_gates=(0, 1, 0, 0)), f"{KEPT.format('lstm', '(0, 1, 0, 0)')} state 1 by "),
)


def test_a_network_that_no_cell_builds_is_refused_when_it_is_called():
    network = dataclasses.replace(MGU, masked_gates=(1, 0))
    weights = [floats(3, 2 * U), floats(U, 2 * U), np.zeros(2 * U, "float32")]
    with pytest.raises(ValueError, match=re.escape(KEPT.format("mgu", "(1, 0)"))):
        network(floats(2, 5, 3), None, [np.zeros((2, U), "float32")], weights)


@pytest.mark.skipif(BACKEND == "torch", reason="PyTorch traces nothing here")
def test_a_masked_step_is_refused_in_a_traced_function_too():
    if BACKEND == "tensorflow":
        import tensorflow as tf

        traced = tf.function(built(masked_gates=(1, 0)), autograph=False)
    else:
        import jax

        traced = jax.jit(built(masked_gates=(1, 0)))
    with pytest.raises(ValueError, match="a masked step must keep every state"):
        traced()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", NETWORKS)
def test_right_networks_are_built_in_each_precision(name, dtype):
    NETWORKS[name].require_consistent(11, dtype)


@pytest.mark.parametrize("name", NETWORKS)
def test_right_networks_pass(name):
    check_network(NETWORKS[name])


@pytest.mark.parametrize("name", NETWORKS)
def test_zeros_with_copies_are_right_for_every_network(name):
    network = NETWORKS[name]
    zeros, copies = (0,) * len(network.masked_gates), (True,) * len(network.masked_copies)
    check_network(
        dataclasses.replace(network, masked_gates=zeros, masked_copies=copies, fused=None)
    )


def test_gradients_may_be_tuples():
    def gradients(by_states, saved):
        gates, by_old = _gradients(by_states, saved)
        return tuple(gates), tuple(by_old)

    check_network(dataclasses.replace(MGU, gradients=gradients))


if BACKEND != "torch":  # which does not call `gradients`
    ONE = 'Network "mgu": one step: the gradient by '
    test_wrong_gradients_are_found = refusals(
        (checked(gradients=by_gate(0, 1.01)), f"{ONE}gate 0 of the inputs differs by "),
        (checked(gradients=by_gate(1, 1.01)), f"{ONE}gate 1 of the inputs ...See gradients."),
        (
            checked(recurrent_gradients=None),
            f"{ONE}gate 1 of the recurrent product differs ...needs recurrent_gradients.",
        ),
        (
            checked(recurrent_gradients=lambda gates, saved: [gates[0], gates[1] * saved[1]]),
            f"{ONE}gate 1 of the recurrent product differs ...See recurrent_gradients.",
        ),
        (
            checked(gradients=lambda by_states, saved: (_gradients(by_states, saved)[0], [None])),
            f"{ONE}old state 0 differs by ",
        ),
        (
            checked(gradients=half_where_masked),
            'Network "mgu": five steps under a mask: the gradient by gate 0 of the inputs differs '
            f"...See masked_gates and masked_copies. {SAFE}",
        ),
        (checked(masked_gates=(1, 0)), f"{KEPT.format('mgu', '(1, 0)')} state 0 by "),
    )

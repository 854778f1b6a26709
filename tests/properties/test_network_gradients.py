"""The gradients that a network writes by hand are the derivatives of its formula."""

import numpy as np
import pytest

from tests.arrays import floats, right_padded
from tests.autodiff import gradients_of
from tests.catalogue.case import B, D, S, U
from tests.catalogue.recurrent import CELL_CLASSES
from tests.stepwise import by_the_network, step_by_step

MASKS = {
    "no mask": None,
    "right-padded": right_padded([S, 2], S),
    "holes": np.array([[0, 1, 0, 1, 1], [0] * S], bool),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("cell_class", CELL_CLASSES.values(), ids=lambda each: each.__name__)
def test_gradients_by_hand_are_those_of_automatic_differentiation(cell_class, mask):
    network = cell_class.network
    num_states, width = len(network.masked_copies), len(network.masked_gates) * U
    shapes = {
        "sequence": (B, S, D),
        **{f"state {index}": (B, U) for index in range(num_states)},
        "kernel": (D, width),
        "recurrent kernel": (U, width),
        "bias": (*cell_class.bias_rows, width),
    }
    values = [0.5 * floats(*shape, seed=seed) for seed, shape in enumerate(shapes.values())]
    actual = gradients_of(by_the_network(network, mask, num_states), values)
    expected = gradients_of(step_by_step(network, mask, num_states), values)
    for name, one, other in zip(shapes, actual, expected, strict=True):
        message = (
            f"{cell_class.__name__}: the gradient by the {name} differs from that of its steps. "
            f"Correct `gradients` or `recurrent_gradients` of the Network {network.name!r}."
        )
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, err_msg=message)

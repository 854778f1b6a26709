import numpy as np
import pytest
from keras import tree

from tests.arrays import close, numbers
from tests.catalogue import CASES, call

CAUSAL = [(case, name) for case in CASES for name in case.past]


def changed_from(array, t):
    """The same up to step t, other numbers from there on."""
    later = array[:, :1] * -3 + 5 if array.dtype.kind == "f" else array[:, :1]
    other = np.array(array)
    other[:, t:] = later if array.dtype.kind == "f" else np.roll(array[:, t:], 1, axis=0)
    return other


@pytest.mark.parametrize("case, name", CAUSAL, ids=[f"{case.name}-{name}" for case, name in CAUSAL])
def test_the_future_does_not_change_the_past(case, name):
    layer, inputs = case.built(), case.inputs()
    expected = numbers(call(layer, inputs))
    changes = False
    for t in range(1, inputs[name].shape[1]):
        actual = numbers(call(layer, inputs | {name: changed_from(inputs[name], t)}))
        for each, other in zip(tree.flatten(actual), tree.flatten(expected), strict=True):
            close(each[:, :t], other[:, :t])
            changes |= not np.allclose(each[:, t:], other[:, t:])
    assert changes

import numpy as np
from keras import tree

from tests.arrays import close, numbers
from tests.catalogue import CASES, call, options_long


def changed_from(array, t):
    """The same up to step t, other numbers from there on."""
    later = array[:, :1] * -3 + 5 if array.dtype.kind == "f" else array[:, :1]
    other = np.array(array)
    other[:, t:] = later if array.dtype.kind == "f" else np.roll(array[:, t:], 1, axis=0)
    return other


@options_long([case for case in CASES if case.past])
def test_the_future_does_not_change_the_past(case):
    layer, inputs = case.built(), case.inputs()
    expected = numbers(call(layer, inputs))
    for name in case.past:
        changes = False
        for t in range(1, inputs[name].shape[1]):
            outputs = numbers(call(layer, inputs | {name: changed_from(inputs[name], t)}))
            for actual, other in zip(tree.flatten(outputs), tree.flatten(expected), strict=True):
                close(actual[:, :t], other[:, :t])
                changes |= not np.allclose(actual[:, t:], other[:, t:])
        assert changes, name

import keras
from keras import ops, tree

from tests.arrays import close
from tests.catalogue import CASES, call, options_long


def symbol(array, axis=None):
    """An input like an array, but that an axis may have any length."""
    dtype = keras.backend.standardize_dtype(ops.convert_to_tensor(array).dtype)
    shape = [None if place == axis else size for place, size in enumerate(array.shape)]
    return keras.Input(shape[1:], dtype=dtype)


@options_long([case for case in CASES if case.lengths])
def test_a_functional_model_of_open_lengths_takes_any(case):
    layer, inputs = case.built(), case.inputs()
    symbols = {
        name: symbol(each, case.lengths[name])
        if name in case.lengths
        else tree.map_structure(symbol, each)
        for name, each in inputs.items()
    }
    model = keras.Model(tree.flatten(symbols), call(layer, symbols))
    longer = case.padded(inputs, 2)
    close(call(model, tree.flatten(longer)), call(layer, longer))

import json

import keras
from keras import ops, tree

from tests.arrays import close
from tests.catalogue import CASES, call, options_long


def symbol(array):
    """An input of the dtype in which the backend holds such an array: JAX has no int64."""
    dtype = keras.backend.standardize_dtype(ops.convert_to_tensor(array).dtype)
    return keras.Input(array.shape[1:], dtype=dtype)


@options_long(CASES)
def test_a_layer_is_made_again_from_its_config(case):
    config = case.make().get_config()
    again = type(case.make()).from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config
    layer, inputs = case.built(), case.inputs()
    call(again, inputs)
    again.set_weights(layer.get_weights())
    close(call(again, inputs), call(layer, inputs))


@options_long(CASES)
def test_a_saved_model_gives_the_same_outputs(case, tmp_path):
    layer, inputs = case.built(), case.inputs()
    expected = call(layer, inputs)
    if isinstance(layer, keras.Model):
        model = layer
    else:
        symbols = tree.map_structure(symbol, inputs)
        model = keras.Model(tree.flatten(symbols), call(layer, symbols))
        inputs = tree.flatten(inputs)
        close(call(model, inputs), expected)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    if model is layer:
        assert loaded.get_config() == model.get_config()
    close(call(loaded, inputs), expected)

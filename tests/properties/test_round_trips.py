import json

import keras
import pytest
from keras import tree

from tests.arrays import close
from tests.catalogue import CASES, call


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_layer_is_made_again_from_its_config(case):
    config = case.make().get_config()
    again = type(case.make()).from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config
    layer, inputs = case.build(), case.inputs()
    call(again, inputs)
    again.set_weights(layer.get_weights())
    close(call(again, inputs), call(layer, inputs))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_saved_model_gives_the_same_outputs(case, tmp_path):
    layer, inputs = case.build(), case.inputs()
    expected = call(layer, inputs)
    if isinstance(layer, keras.Model):
        model = layer
    else:
        symbols = tree.map_structure(
            lambda each: keras.Input(each.shape[1:], dtype=each.dtype.name), inputs
        )
        model = keras.Model(tree.flatten(symbols), call(layer, symbols))
        inputs = tree.flatten(inputs)
        close(model(inputs), expected)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    if model is layer:
        assert loaded.get_config() == model.get_config()
    close(loaded(inputs), expected)

import json

import keras
import pytest

from tests.arrays import close
from tests.catalogue import CASES, call


def as_model(layer, inputs):
    """A functional model of one layer; a model is its own."""
    if isinstance(layer, keras.Model):
        return layer
    symbols = {
        name: keras.tree.map_structure(
            lambda each: keras.Input(each.shape[1:], dtype=each.dtype.name), value
        )
        for name, value in inputs.items()
    }
    return keras.Model(keras.tree.flatten(symbols), call(layer, symbols))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_layer_is_made_again_from_its_config(case):
    layer, inputs = case.build(), case.inputs()
    config = json.loads(json.dumps(layer.get_config()))
    again = type(layer).from_config(config)
    assert again.get_config() == layer.get_config()
    call(again, inputs)
    again.set_weights(layer.get_weights())
    close(call(again, inputs), call(layer, inputs))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_saved_model_gives_the_same_outputs(case, tmp_path):
    layer, inputs = case.build(), case.inputs()
    model = as_model(layer, inputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    close(loaded(inputs), model(inputs))
    if model is layer:
        assert loaded.get_config() == model.get_config()
    else:
        close(model(inputs), call(layer, inputs))

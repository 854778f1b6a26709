"""Models that were trained in other precisions leave in float32, with the weights they have."""

import keras
import numpy as np
import onnx
import pytest
from keras import layers

from seqkeras.export.__main__ import main
from seqkeras.export.bundle import export
from seqkeras.export.run import read_run
from tests.conftest import others_long
from tests.export.bundles import ONNX_ALONE
from tests.export.test_own_models import LABELS, TOKENIZER, save, sequential
from tests.zoo import classify, forecast, generate, generate_by_characters, translate

OTHERS = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE)


@pytest.fixture
def policy(request, restored):
    keras.config.set_dtype_policy(request.param)
    return request.param


@keras.saving.register_keras_serializable("tests")
class InItsOwnCode(keras.Model):
    """One layer names a policy in the code, one the default's."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.Embedding(len(TOKENIZER), 8, mask_zero=True)
        self.hidden = layers.Dense(5, "relu", dtype="mixed_bfloat16")
        self.pooling = layers.GlobalAveragePooling1D()
        self.out = layers.Dense(len(LABELS), dtype="float32")

    def call(self, token_ids):
        return self.out(self.pooling(self.hidden(self.embedding(token_ids))))


def own_code():
    model = InItsOwnCode()
    model(np.ones((2, 3), int))
    return model


def attention():
    token_ids = keras.Input((None,), dtype="int64", name="token_ids")
    x = layers.Embedding(len(TOKENIZER), 8, mask_zero=True)(token_ids)
    x = layers.LayerNormalization()(layers.MultiHeadAttention(2, 4)(x, x))
    x = layers.GlobalAveragePooling1D()(layers.Dense(8, "gelu")(x))
    return keras.Model(token_ids, layers.Dense(len(LABELS))(x))


def own(model):
    return lambda folder: save(folder, model())


CASES = {
    "classifier": (classify, "mixed_float16", "mixed_float16"),
    "characters": (generate_by_characters, "mixed_bfloat16", "mixed_bfloat16"),
    "transformer": (translate, "mixed_bfloat16", "mixed_bfloat16"),
    "gpt": (generate, "float64", "float64"),
    "forecaster": (forecast, "mixed_float16", "mixed_float16"),
    "attention of Keras": (own(attention), "mixed_float16", "mixed_float16"),
    "layers of Keras": (own(sequential), "float64", "float64"),
    "its own code": (own(own_code), "float64", "float64 and mixed_bfloat16"),
}


@pytest.mark.parametrize(
    "make, policy, names", others_long(CASES.values()), indirect=["policy"], ids=[*CASES]
)
def test_a_model_of_another_precision_leaves_in_float32(make, policy, names, tmp_path):
    make(tmp_path / "run")
    trained = keras.models.load_model(tmp_path / "run/model.keras")
    said = []  # while the policy is what a user's module may have set
    export(tmp_path / "run", tmp_path / "bundle", say=said.append, options=ONNX_ALONE)
    assert keras.config.dtype_policy().name == policy
    assert said[0] == f"the model was trained in {names}; it is exported in float32"
    for file in (tmp_path / "bundle/onnx").glob("*.onnx"):
        graph = onnx.load(file, load_external_data=False).graph
        types = {each.type.tensor_type.elem_type for each in [*graph.input, *graph.value_info]}
        assert not types & {*OTHERS}
        assert not {each.data_type for each in graph.initializer} & {*OTHERS}
    model = read_run(tmp_path / "run").model
    for weight, other in zip(model.weights, trained.weights, strict=True):
        assert weight.dtype == ("float32" if "float" in other.dtype else other.dtype)
        np.testing.assert_array_equal(weight.numpy(), other.numpy().astype(weight.dtype))


@pytest.mark.long
@pytest.mark.parametrize("policy", ["mixed_float16", "float32"], indirect=True)
def test_the_command_says_what_is_exported_in_float32_and_makes_saved_models_too(
    policy, tmp_path, capsys
):
    classify(tmp_path / "run")
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle")]) == 0, capsys.readouterr().err
    line = "  the model was trained in mixed_float16; it is exported in float32\n"
    output = capsys.readouterr().out
    assert (line in output) == ("trained in" in output) == (policy == "mixed_float16")

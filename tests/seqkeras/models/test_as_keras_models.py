"""Whatever Keras does with a model, it does with ours."""

import keras
import numpy as np
import pytest
from keras import tree

from seqkeras.embeddings import TokenEmbedding
from seqkeras.models import GPT
from tests.arrays import close, needs_tensorflow, numbers
from tests.catalogue import CASES
from tests.catalogue.models import LANGUAGE
from tests.catalogue.seq2seq import CASES as RECURRENT_PAIRS
from tests.catalogue.transformer_models import BERTS, GPTS, TRANSFORMERS, WITH_HEADS
from tests.conftest import others_long

MODELS = [case for case in CASES if issubclass(case.layer_class, keras.Model)]
SOME = [GPTS[0], LANGUAGE[1], TRANSFORMERS[1], RECURRENT_PAIRS[0], BERTS[0], WITH_HEADS[2]]
FIT = {
    "eagerly": {"run_eagerly": True},
    "two steps at once": {"steps_per_execution": 2, "jit_compile": False},
    "compiled": {"jit_compile": True},
}
some_models = pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)


def as_floats(inputs):
    """Symbols as Keras makes them of the mean of several replicas' inputs."""
    return tree.map_structure(lambda each: keras.KerasTensor(each.shape, "float32"), inputs)


@needs_tensorflow
@pytest.mark.parametrize("case", others_long(MODELS), ids=lambda case: case.name)
def test_a_model_is_built_from_the_mean_of_several_replicas_inputs(case):
    from keras.src.backend import compute_output_spec  # what `fit` under a strategy calls

    model, inputs = case.make(), case.inputs()
    spec = compute_output_spec(model, as_floats(inputs), training=False)
    assert model.built
    shapes = tree.map_structure(lambda each: tuple(each.shape), spec)
    assert shapes == tree.map_structure(np.shape, numbers(case.built()(inputs)))


def test_floats_are_refused_where_they_are_no_mean():
    ids = keras.Input((None,), name="token_ids")
    with pytest.raises(ValueError, match="TokenEmbedding: token_ids must be integers; received f"):
        TokenEmbedding(11, 7)(ids)
    model = GPT(11, 6, 1, 2, 12, 7)
    with pytest.raises(ValueError, match="GPT: token_ids must be integers; received float32"):
        model({"token_ids": ids})
    model.compile("sgd", "mse")
    for fit in (model.fit, model.train_on_batch):
        with pytest.raises(ValueError, match="GPT: token_ids must be integers; received float32"):
            fit({"token_ids": np.ones((2, 3), "float32")}, np.ones((2, 3, 11)))


@needs_tensorflow
@pytest.mark.parametrize("case", others_long(SOME), ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", others_long(["int64", None]))
def test_keras_exports_a_model(case, dtype, tmp_path):
    import tensorflow as tf

    model, inputs = case.built(), case.inputs()
    given = tree.map_structure(lambda each: tf.constant(each, dtype or "int32"), inputs)
    specs = {name: keras.InputSpec(dtype, (None,) * each.ndim) for name, each in inputs.items()}
    signature = {"input_signature": [specs]} if dtype else {}
    model.export(tmp_path, format="tf_saved_model", verbose=False, **signature)
    loaded = tf.saved_model.load(tmp_path)
    close(loaded.serve(given), model(inputs), rtol=1e-4, atol=1e-5)


@needs_tensorflow
@pytest.mark.long
@pytest.mark.parametrize("options", FIT.values(), ids=FIT)
@some_models
def test_a_model_learns_in_every_way_of_fit(case, options):
    model, inputs = case.build(), case.inputs()
    targets = tree.map_structure(np.zeros_like, numbers(model(inputs)))
    before = model.get_weights()
    model.compile("sgd", "mse", **options)
    twice = tree.map_structure(lambda each: np.concatenate([each] * 4), (inputs, targets))
    history = model.fit(*twice, batch_size=2, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert any((old != new).any() for old, new in zip(before, model.get_weights(), strict=True))


@some_models
def test_a_model_is_cloned_and_summarized(case):
    model, inputs, lines = case.built(), case.inputs(), []
    clone = keras.models.clone_model(model)
    clone(inputs)
    clone.set_weights(model.get_weights())
    close(tree.flatten(clone(inputs)), tree.flatten(model(inputs)))
    model.summary(print_fn=lambda line, **_: lines.append(line))
    assert f"Total params: {model.count_params():,}" in "".join(lines)


@needs_tensorflow
@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method:UserWarning")
@pytest.mark.parametrize("case", others_long(SOME), ids=lambda case: case.name)
def test_a_model_is_quantized_to_8_bits(case):
    model, inputs = case.build(), case.inputs()
    exact = tree.flatten(numbers(model(inputs)))
    model.quantize("int8")
    for quantized, each in zip(tree.flatten(numbers(model(inputs))), exact, strict=True):
        assert 0 < np.abs(quantized - each).max() < 0.1 * np.abs(each[np.abs(each) < 1e8]).max()

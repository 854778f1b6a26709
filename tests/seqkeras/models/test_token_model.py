"""Ids beyond the vocabulary are refused before Keras traces a graph, which does not see them."""

import keras
import numpy as np
import pytest

from seqkeras.decoding import greedy
from seqkeras.models import (
    GPT,
    RNNLanguageModel,
    RNNSeq2Seq,
)
from seqkeras.values import known_numbers
from tests.arrays import needs_tensorflow, numbers
from tests.conftest import others_long
from tests.seqkeras.models.support import SIZES
from tests.seqkeras.models.test_inputs import LIMITS, TEXTS, TRANSFORMERS

TOKEN_IDS = TEXTS["token_ids"]
GIVEN = TEXTS | {"target_ids": TOKEN_IDS, "masked_positions": np.array([[0], [2]])}
BEYOND = {inputs: limit for inputs, (_, limit, _) in LIMITS.items()}
MODELS = {name: make for name, (make, _) in TRANSFORMERS.items()} | {
    "RNNLanguageModel": lambda: RNNLanguageModel(17, 5, 7),
    "RNNSeq2Seq": lambda: RNNSeq2Seq.bahdanau(17, 13, 5, 7, 11),
}
METHODS = {
    "fit": lambda model, given: model.fit(given, TOKEN_IDS),
    "validation": lambda model, given: model.fit(
        given_to(model), validation_data=(given, TOKEN_IDS)
    ),
    "evaluate": lambda model, given: model.evaluate(given, TOKEN_IDS),
    "predict": lambda model, given: model.predict(x=given),
    "train_on_batch": lambda model, given: model.train_on_batch(given, TOKEN_IDS),
    "test_on_batch": lambda model, given: model.test_on_batch(given, TOKEN_IDS),
    "predict_on_batch": lambda model, given: model.predict_on_batch(given),
}


def given_to(model):
    return {name: GIVEN[name] for names in model.input_names for name in names}


def with_wrong_id(model, inputs, number):
    given = given_to(model)
    given[inputs] = given[inputs].copy()
    given[inputs][1, -1] = number
    return given


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", others_long(METHODS))
def test_an_id_out_of_range_is_refused_before_anything_is_computed(method, name):
    model = MODELS[name]()
    for inputs in BEYOND.keys() & given_to(model):
        for wrong in (-1, BEYOND[inputs]):
            limit = BEYOND[inputs] - 1
            message = f"^{name}: {inputs} must be from 0 to {limit}, as .*ed {wrong}\\.$"
            with pytest.raises(ValueError, match=message):
                METHODS[method](model, with_wrong_id(model, inputs, wrong))
            assert not model.built


@pytest.mark.parametrize("wrong", [-1, 13])
def test_a_recurrent_model_looks_at_the_ids_of_a_source_and_of_a_step(wrong):
    model = MODELS["RNNSeq2Seq"]()
    with pytest.raises(ValueError, match="^RNNSeq2Seq: token_ids must be from 0 to 16"):
        model.encode(with_wrong_id(model, "token_ids", 17)["token_ids"], GIVEN["lengths"])
    state = model.encode(GIVEN["token_ids"], GIVEN["lengths"])
    message = f"^RNNSeq2Seq: token_ids must be from 0 to 12, as target_vocab_.* received {wrong}"
    with pytest.raises(ValueError, match=message):
        model.step(np.array([[1], [wrong]]), state)


def test_tensors_are_looked_at_too():
    model = MODELS["GPT"]()
    token_ids = keras.ops.convert_to_tensor(with_wrong_id(model, "token_ids", 17)["token_ids"])
    with pytest.raises(ValueError, match="^GPT: token_ids must be from 0 to 16"):
        model.predict({"token_ids": token_ids}, verbose=0)


@pytest.mark.parametrize("method", others_long(METHODS))
@pytest.mark.parametrize("name", ["GPT", "Bert", "WithHeads", "SentenceEncoder"])
def test_a_sequence_beyond_the_learned_positions_is_refused(name, method):
    model, given = MODELS[name](), {"token_ids": np.ones((2, 6), int)}
    message = "^LearnedPositions: a sequence must have at most max_length, 5, positions; received 6"
    with pytest.raises(ValueError, match=message):
        METHODS[method](model, given)
    assert not model.built


@pytest.mark.parametrize("name", ["GPT", "RNNLanguageModel", "Transformer", "RNNSeq2Seq"])
def test_a_model_that_was_never_called_decodes(name):
    model = MODELS[name]()
    given = given_to(model)
    if "target_ids" in given:
        state = model.encode(given["token_ids"], given["lengths"])
    else:
        state = model.initial_state(2)
    found, _, _ = greedy(model.step, state, start_id=1, end_id=3, max_length=5)
    assert found.shape == (2, 5)
    assert np.all(np.isfinite(numbers(model(given))))


@pytest.mark.parametrize("name", others_long(MODELS, 2))
def test_inputs_that_nobody_reads_cost_no_weights(name):
    """Keras on JAX loses them by an error inside `predict`."""
    model = MODELS[name]()
    given = given_to(model)
    model(given)
    with pytest.raises(ValueError, match=f"^{name}: inputs must be among .*; received .'mask'"):
        model.predict(given | {"mask": TOKEN_IDS}, verbose=0)
    with pytest.raises(ValueError, match=f"^{name}: inputs must be a dictionary of .*d ndarray"):
        model.predict(TOKEN_IDS, verbose=0)
    assert np.all(np.isfinite(keras.tree.flatten(model.predict(given, verbose=0))[0]))


@needs_tensorflow
@pytest.mark.parametrize(
    "length, message",
    [
        (3, r"from 0 to 16, as there are 17 of them; received 20 in a batch\.$"),
        (6, r"from 0 to 4, as there are 5 of them; received 5 in a batch\.$"),
    ],
)
def test_in_a_pipeline_tensorflows_error_gets_our_words(length, message):
    import tensorflow as tf

    def batches():
        yield {"token_ids": np.full((2, 3), 16)}
        yield {"token_ids": np.full((2, length), 20 if length == 3 else 16)}

    signature = {"token_ids": tf.TensorSpec((None, None), tf.int64)}
    data = tf.data.Dataset.from_generator(batches, output_signature=signature)
    with pytest.raises(ValueError, match=f"^GPT: ids and positions must be {message}"):
        MODELS["GPT"]().predict(data, verbose=0)


@needs_tensorflow
def test_the_errors_of_other_tables_stay_as_they_are():
    class WithTable(GPT):
        def call(self, inputs, training=False):
            return keras.ops.take(np.ones((7, 3)), inputs["token_ids"], axis=0)

    import tensorflow as tf

    data = tf.data.Dataset.from_tensors({"token_ids": np.full((2, 3), 8)})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"= 8 is not in \[0, 7\)"):
        WithTable(17, **SIZES, max_length=5).predict(data, verbose=0)


def test_an_array_that_may_be_larger_than_the_memory_is_not_copied():
    assert known_numbers(TOKEN_IDS) is TOKEN_IDS

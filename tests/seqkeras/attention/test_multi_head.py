import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.attention import MultiHeadAttention, causal_mask, window_mask
from tests import references, vectors
from tests.agreement import (
    DOUBLE,
    assert_equals_torch,
    difference,
)
from tests.arrays import close, floats, gradients, numbers, randomize, right_padded
from tests.autodiff import gradients_of
from tests.catalogue.attention import attention_inputs
from tests.complex_step import assert_is_the_formula
from tests.conftest import others_long

MASKS = {
    "none": None,
    "padding": right_padded([5, 3], 5)[:, None],
    "window": np.asarray(window_mask(5, 1, 2)),
    "padding and causality": right_padded([4, 5], 5)[:, None] & np.asarray(causal_mask(5)),
}


def make():
    return MultiHeadAttention(3, 2, output_dim=17)


def reference(weights, query, key, value, attention_mask=None):
    return references.multi_head_attention(query, key, value, attention_mask, weights)[0]


def test_multi_head_attention_and_its_gradients_are_the_papers_formula():
    inputs = attention_inputs()
    inputs["attention_mask"][1, 2] = False
    assert_is_the_formula(make, inputs, reference)
    del inputs["attention_mask"]
    assert_is_the_formula(make, inputs, reference)


def test_the_weights_of_each_head_are_right():
    inputs = attention_inputs()
    layer = make()
    layer(**inputs)
    randomize(layer)
    value = inputs.pop("value")
    _, expected = references.multi_head_attention(
        inputs["query"], inputs["key"], value, inputs["attention_mask"], layer.get_weights()
    )
    close(layer.attention_weights(**inputs), expected)


def test_each_head_may_have_a_mask_of_its_own():
    inputs = attention_inputs()
    masks = floats(2, 3, 3, 5, seed=1) > 0
    layer = make()
    layer(**inputs)
    by_head = numbers(layer.attention_weights(inputs["query"], inputs["key"], masks))
    assert np.all(by_head[~masks] == 0)
    for n in range(3):
        alone = layer.attention_weights(inputs["query"], inputs["key"], masks[:, n])
        close(by_head[:, n], alone[:, n])
    layer(**inputs | {"attention_mask": masks})


@pytest.mark.parametrize("causal", [False, True], ids=["whole", "causal"])
@pytest.mark.parametrize("mask", others_long(reversed(MASKS.values())), ids=reversed(MASKS))
def test_multi_head_attention_is_that_of_keras(mask, causal):
    ours = MultiHeadAttention(3, 2, output_dim=17, causal=causal)
    rival = keras.layers.MultiHeadAttention(3, 2, output_shape=17)
    query, key, value = floats(2, 5, 7), floats(2, 5, 11), floats(2, 5, 13)
    ours(query, key, value)
    rival(query, value, key)
    randomize(ours)
    rival.set_weights(ours.get_weights())

    def of_ours(query, key, value):
        return ours(query, key, value, attention_mask=mask)

    def of_keras(query, key, value):
        whole = None if mask is None else np.broadcast_to(mask, (2, 5, 5))
        return rival(query, value, key, attention_mask=whole, use_causal_mask=causal)

    factors = floats(2, 5, 17, seed=5)
    results = []
    for layer, function in ((ours, of_ours), (rival, of_keras)):

        def loss(values, function=function):
            return ops.sum(ops.multiply(factors, function(*values)))

        inputs = [query, key, value]
        by_weights = gradients(layer, lambda _, loss=loss, inputs=inputs: loss(inputs))
        results.append((function(*inputs), [*gradients_of(loss, inputs), *by_weights]))
    assert difference(results[0][0], results[1][0]) < 1e-5
    assert difference(results[0][1], results[1][1]) < 1e-5
    ours.set_weights(rival.get_weights())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["plain", "cross", "padding", "window", "causal"])
def test_multi_head_attention_is_that_of_torch(name, dtype):
    if dtype == "float64" and not DOUBLE:
        pytest.skip("Keras computes in float64 on TensorFlow only")
    stored = {
        key.removeprefix(f"{name}/{dtype}/"): each
        for key, each in vectors.load("attention").items()
        if key.startswith(f"{name}/{dtype}/")
    }
    assert_equals_torch(stored, causal=name == "causal", dtype=dtype)


@pytest.mark.parametrize("policy", others_long(["mixed_float16", "float32"]))
def test_a_fully_masked_row_gives_zeros_and_no_gradient(policy):
    layer = MultiHeadAttention(3, 2, use_bias=False, dtype=policy)
    inputs = attention_inputs()
    inputs["attention_mask"][1] = False
    layer(**inputs)
    assert np.all(numbers(ops.cast(layer(**inputs), "float32"))[1] == 0)
    names = ["query", "key", "value"]

    def loss(values):
        outputs = layer(*values, attention_mask=inputs["attention_mask"])
        return ops.sum(ops.cast(outputs, "float32") ** 2)

    for gradient in gradients_of(loss, [inputs[name] for name in names]):
        assert np.all(np.isfinite(gradient)) and np.any(gradient[0] != 0)
        assert np.all(gradient[1] == 0)


def test_step_by_step_with_a_cache_is_all_at_once():
    layer, sequence = MultiHeadAttention(3, 2, causal=True), floats(2, 3, 11)
    layer(sequence, sequence, sequence)
    randomize(layer)
    expected = layer(sequence, sequence, sequence)
    keys, values = layer.prepare(sequence[:, :0], sequence[:, :0])
    for t in range(3):
        new = sequence[:, t : t + 1]
        new_key, new_value = layer.prepare(new, new)
        keys = ops.concatenate([keys, new_key], axis=2)
        values = ops.concatenate([values, new_value], axis=2)
        close(layer.attend(new, keys, values), expected[:, t : t + 1])


def test_beside_a_cache_the_last_query_is_at_the_last_key():
    layer, sequence = MultiHeadAttention(3, 2, causal=True), floats(2, 7, 11)
    whole = layer(sequence, sequence, sequence)
    close(layer(sequence[:, 4:], sequence, sequence), whole[:, 4:])
    mask = right_padded([7, 5], 7)[:, None]
    whole = layer(sequence, sequence, sequence, attention_mask=mask)
    close(layer(sequence[:, 4:], sequence, sequence, attention_mask=mask), whole[:, 4:])

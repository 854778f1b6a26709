import keras
import numpy as np
import pytest

from seqkeras.attention import MultiHeadAttention, window_mask
from tests import references, vectors
from tests.agreement import (
    DOUBLE,
    assert_equals_torch,
)
from tests.arrays import close, floats, numbers, right_padded
from tests.catalogue.attention import attention_inputs
from tests.complex_step import assert_is_the_formula


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


def test_weights_of_float64_arrays_have_the_dtype_of_the_layer():
    layer, query, key = make(), floats(2, 3, 7), floats(2, 5, 11)
    layer(query, key, key)
    weights = layer.attention_weights(query.astype("float64"), key.astype("float64"))
    assert keras.backend.standardize_dtype(weights.dtype) == "float32"
    close(weights, layer.attention_weights(query, key))


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


MASKS = {
    "none": None,
    "padding": np.repeat(right_padded([5, 3], 5)[:, None], 5, axis=1),
    "window": np.repeat(window_mask(5, 1, 2), 2, axis=0),
}


@pytest.mark.parametrize("causal", [False, True], ids=["whole", "causal"])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_multi_head_attention_is_that_of_keras(mask, causal):
    ours = MultiHeadAttention(3, 2, output_dim=17, causal=causal)
    rival = keras.layers.MultiHeadAttention(3, 2, output_shape=17)
    query, key, value = floats(2, 5, 7), floats(2, 5, 11), floats(2, 5, 13)
    ours(query, key, value)
    expected = rival(query, value, key, attention_mask=mask, use_causal_mask=causal)
    ours.set_weights(rival.get_weights())
    close(ours(query, key, value, attention_mask=mask), expected)


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


def test_beside_a_cache_the_last_query_is_at_the_last_key():
    layer, sequence = MultiHeadAttention(3, 2, causal=True), floats(2, 7, 11)
    whole = layer(sequence, sequence, sequence)
    close(layer(sequence[:, 4:], sequence, sequence), whole[:, 4:])
    mask = right_padded([7, 5], 7)[:, None]
    whole = layer(sequence, sequence, sequence, attention_mask=mask)
    close(layer(sequence[:, 4:], sequence, sequence, attention_mask=mask), whole[:, 4:])

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.attention import AdditiveScore, Attention
from tests import references
from tests.agreement import difference
from tests.arrays import close, floats, numbers, right_padded
from tests.autodiff import gradients_of
from tests.catalogue.attention import attention_inputs
from tests.complex_step import assert_is_the_formula


def case():
    def reference(weights, query, key, value, attention_mask=None):
        scores = references.additive_score(query, key, *weights)
        return references.attention(scores, value, attention_mask)

    return lambda: Attention(AdditiveScore(17)), attention_inputs(), reference


def test_attention_and_its_gradients_are_the_papers_formula():
    make, inputs, reference = case()
    inputs["attention_mask"][1, 2] = False
    assert_is_the_formula(make, inputs, reference)
    del inputs["attention_mask"]
    assert_is_the_formula(make, inputs, reference)


def test_one_mask_may_serve_every_query():
    make, inputs, reference = case()
    layer = make()
    inputs["attention_mask"] = right_padded([5, 0], 5)[:, None]
    whole = inputs | {"attention_mask": np.repeat(inputs["attention_mask"], 3, axis=1)}
    close(layer(**inputs), reference(layer.get_weights(), **whole))


def test_a_score_that_is_built_is_used_as_it_is():
    query, key, value = floats(2, 3, 7), floats(2, 5, 11), floats(2, 5, 13)
    score = AdditiveScore(17)
    scores = score(query, key)
    _, weights = Attention(score)(query, key, value)
    close(weights, references.attention(numbers(scores), value)[1])


def test_attention_to_a_prepared_key_is_attention():
    make, inputs, _ = case()
    layer = make()
    expected = layer(**inputs)
    prepared = layer.score.prepare(inputs["key"])
    mask = inputs["attention_mask"]
    for t in range(3):
        one = layer.attend(
            inputs["query"][:, t : t + 1], prepared, inputs["value"], mask[:, t : t + 1]
        )
        close(one, [each[:, t : t + 1] for each in expected])


def of_keras(kind, scale, mask):
    """Keras's layer as a function of query, key and value."""
    layer = {"dot": keras.layers.Attention, "additive": keras.layers.AdditiveAttention}[kind]()
    layer([floats(2, 3, 7), floats(2, 5, 7), floats(2, 5, 7)])
    if kind == "additive":
        layer.set_weights([scale])
    return lambda query, key, value: layer(
        [query, value, key], mask=[None, mask], return_attention_scores=True
    )


@pytest.mark.parametrize("kind", ["dot", "additive"])
def test_attention_is_that_of_keras(kind):
    mask, scale = right_padded([5, 3], 5), floats(7, seed=3)
    ours = Attention() if kind == "dot" else Attention(AdditiveScore(7))
    inputs = [floats(2, 3, 7), floats(2, 5, 7, seed=1), floats(2, 5, 7, seed=2)]
    ours(*inputs)
    if kind == "additive":  # Keras has no kernels
        ours.set_weights([np.eye(7), np.eye(7), scale[:, None]])
    rival = of_keras(kind, scale, mask)
    factors = floats(2, 3, 7, seed=4)
    results = []
    for layer in (lambda q, k, v: ours(q, k, v, attention_mask=mask[:, None]), rival):
        by_inputs = gradients_of(
            lambda values, layer=layer: ops.sum(ops.multiply(factors, layer(*values)[0])), inputs
        )
        results.append((layer(*inputs), by_inputs))
    assert difference(results[0][0], results[1][0]) < 1e-5
    assert difference(results[0][1], results[1][1]) < 1e-5

import numpy as np
from keras import ops

from seqkeras.attention import AdditiveScore, Attention
from tests import references
from tests.arrays import close, floats, gradients, right_padded
from tests.catalogue.attention import ATTENTIONS

[CASE] = [case for case in ATTENTIONS if case.mask]


def expected(layer, query, key, value, attention_mask=None):
    scores = references.additive_score(query, key, *layer.score.get_weights())
    return references.attention(scores, value, attention_mask)


def test_attention_is_the_papers_formula():
    layer, inputs = CASE.build(), CASE.inputs()
    close(layer(**inputs), expected(layer, **inputs))
    del inputs["attention_mask"]
    close(layer(**inputs), expected(layer, **inputs))


def test_one_mask_may_serve_every_query():
    layer, inputs = CASE.build(), CASE.inputs()
    inputs["attention_mask"] = right_padded([5, 0], 5)[:, None]
    whole = inputs | {"attention_mask": np.repeat(inputs["attention_mask"], 3, axis=1)}
    close(layer(**inputs), expected(layer, **whole))


def test_a_fully_masked_row_has_gradients_without_nan():
    layer, inputs = CASE.build(), CASE.inputs()
    inputs["attention_mask"] = np.zeros_like(inputs["attention_mask"])
    for gradient in gradients(layer, lambda each: ops.sum(each(**inputs)[0])):
        assert np.all(gradient == 0)


def test_a_score_that_is_built_is_used_as_it_is():
    query, key, value = floats(2, 3, 7), floats(2, 5, 11), floats(2, 5, 13)
    score = AdditiveScore(17)
    scores = score(query, key)
    _, weights = Attention(score)(query, key, value)
    close(weights, references.attention(np.asarray(scores), value)[1])

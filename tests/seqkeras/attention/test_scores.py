import numpy as np
import pytest

from seqkeras.attention import (
    AdditiveScore,
    ConcatScore,
    DotScore,
    GeneralScore,
    ScaledDotScore,
)
from tests import references
from tests.agreement import assert_gradients_agree, assert_outputs_agree
from tests.arrays import close, floats

SCORES = {
    "additive": (lambda: AdditiveScore(13), references.additive_score, 11),
    "concat": (lambda: ConcatScore(13), references.concat_score, 11),
    "general": (GeneralScore, references.general_score, 11),
    "dot": (DotScore, references.dot_score, 7),
    "scaled_dot": (ScaledDotScore, references.scaled_dot_score, 7),
}
every_score = pytest.mark.parametrize("name", SCORES)


def case(name):
    make, reference, key_dim = SCORES[name]
    inputs = {"query": floats(2, 3, 7), "key": floats(2, 5, key_dim)}
    return make, inputs, lambda weights, query, key: reference(query, key, *weights)


@every_score
def test_a_score_is_the_papers_formula(name):
    assert_outputs_agree(*case(name))


@every_score
def test_the_gradients_of_a_score_are_right(name):
    assert_gradients_agree(*case(name))


@every_score
def test_a_prepared_key_serves_many_queries(name):
    make, inputs, _ = case(name)
    score = make()
    whole = score(**inputs)
    prepared = score.prepare(inputs["key"])
    for t in range(3):
        close(score.compare(inputs["query"][:, t : t + 1], prepared), whole[:, t : t + 1])


def test_the_concat_score_is_the_additive_one_with_both_kernels_in_one():
    query, key = floats(2, 3, 7), floats(2, 5, 11)
    concat, additive = ConcatScore(13), AdditiveScore(13)
    expected = additive(query, key)
    query_kernel, key_kernel, scale = additive.get_weights()
    concat(query, key)
    concat.set_weights([np.concatenate([query_kernel, key_kernel]), scale])
    close(concat(query, key), expected)


@pytest.mark.parametrize(
    "query, key, message",
    [
        ((3, 7), (2, 5, 11), r"query must have shape \(batch, length, dim\); received \(3, 7\)"),
        ((2, 3, 7), (5, 11), r"key must have shape \(batch, length, dim\); received \(5, 11\)"),
        ((2, 3, 7), (2, 5, None), r"key must have .*; received \(2, 5, None\)"),
    ],
)
@every_score
def test_what_is_no_sequence_is_refused(name, query, key, message):
    score = SCORES[name][0]()
    with pytest.raises(ValueError, match=rf"^{type(score).__name__}: {message}\.$"):
        score.build(query, key)


@pytest.mark.parametrize("score_class", [DotScore, ScaledDotScore])
def test_a_dot_product_of_two_dims_is_refused(score_class):
    message = (
        rf"^{score_class.__name__}: query and key must have the same dim; received 7 and 11\. "
        r"GeneralScore takes different ones\.$"
    )
    with pytest.raises(ValueError, match=message):
        score_class()(floats(2, 3, 7), floats(2, 5, 11))


def test_the_scaled_dot_product_of_normal_numbers_is_of_size_one():
    query, key = floats(1, 97, 401), floats(1, 89, 401)
    scores = np.asarray(ScaledDotScore()(query, key))
    assert 0.9 < scores.std() < 1.1


@pytest.mark.parametrize("units", [0, -3, 2.0, True, None, "17"])
@pytest.mark.parametrize("score_class", [AdditiveScore, ConcatScore])
def test_units_that_are_no_positive_integer_are_refused(score_class, units):
    message = rf"^{score_class.__name__}: units must be a positive integer; received {units!r}\.$"
    with pytest.raises(ValueError, match=message):
        score_class(units)

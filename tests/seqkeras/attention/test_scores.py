import pytest

from seqkeras.attention import AdditiveScore, ConcatScore, DotScore, GeneralScore, ScaledDotScore
from tests import references
from tests.arrays import close, floats
from tests.complex_step import assert_is_the_formula

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
def test_a_score_and_its_gradients_are_the_papers_formula(name):
    assert_is_the_formula(*case(name))


@every_score
def test_a_prepared_key_serves_many_queries(name):
    make, inputs, _ = case(name)
    score = make()
    whole = score(**inputs)
    prepared = score.prepare(inputs["key"])
    for t in range(3):
        close(score.compare(inputs["query"][:, t : t + 1], prepared), whole[:, t : t + 1])

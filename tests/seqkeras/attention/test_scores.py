import pytest

from seqkeras.attention import AdditiveScore
from tests import references
from tests.arrays import close, floats, randomize


def built(query, key, units=13):
    score = AdditiveScore(units)
    score.build(query.shape, key.shape)
    return randomize(score)


def test_the_additive_score_is_the_papers_formula():
    query, key = floats(2, 3, 7), floats(2, 5, 11)
    score = built(query, key)
    close(score(query, key), references.additive_score(query, key, *score.get_weights()))


def test_a_prepared_key_serves_many_queries():
    query, key = floats(2, 3, 7), floats(2, 5, 11)
    score = built(query, key)
    prepared, whole = score.prepare(key), score(query, key)
    for t in range(3):
        close(score.compare(query[:, t : t + 1], prepared), whole[:, t : t + 1])


@pytest.mark.parametrize(
    "query, key, message",
    [
        ((3, 7), (2, 5, 11), r"query must have shape \(batch, length, dim\); received \(3, 7\)"),
        ((2, 3, 7), (5, 11), r"key must have shape \(batch, length, dim\); received \(5, 11\)"),
        ((2, 3, 7), (2, 5, None), r"key must have .*; received \(2, 5, None\)"),
    ],
)
def test_what_is_no_sequence_is_refused(query, key, message):
    with pytest.raises(ValueError, match=rf"^AdditiveScore: {message}\.$"):
        AdditiveScore(13).build(query, key)

import numpy as np
import pytest

from seqkeras.models import Bert, SentenceEncoder, TaggingHead, WithHeads
from tests.arrays import close, numbers, randomize
from tests.refusals import refusals

TOKENS = {"token_ids": np.array([[3, 8, 16, 2, 5], [7, 1, 4, 0, 0]]), "lengths": np.array([5, 3])}


def built(pooler="tanh", **options):
    encoder = Bert(17, 6, 2, 3, 11, max_length=13, pooler=pooler)
    model = SentenceEncoder(encoder, **options)
    model(TOKENS)
    return randomize(model)


def pooled_by_hand(model, pooling):
    """A sentence at a time, in float64."""
    hidden = numbers(model.encoder(TOKENS)["hidden"]).astype("float64")
    rows = zip(hidden, TOKENS["lengths"], strict=True)
    return [row[0] if pooling == "cls" else sum(row[:n]) / n for row, n in rows]


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_sentence_is_what_its_pooling_says(pooling):
    model = built(pooling=pooling, normalize=False)
    close(model(TOKENS), np.array(pooled_by_hand(model, pooling)), rtol=1e-4, atol=1e-6)
    model = built(pooling=pooling)
    expected = [v / np.sqrt(v @ v) for v in pooled_by_hand(model, pooling)]
    close(model(TOKENS), np.array(expected), rtol=1e-4, atol=1e-6)


def test_the_pooler_of_a_shared_encoder_is_left_as_it_is():
    model = built()
    pooler = model.encoder.pooler
    assert pooler.trainable and all(each.trainable for each in pooler.weights)
    learning, rest = model.trainable_variables, model.non_trainable_variables
    assert len(learning) + len(rest) == len(model.variables)
    assert {id(each) for each in pooler.weights} <= {id(each) for each in rest}
    assert len(model.trainable_weights) + 2 == len(model.weights)
    assert len(model.non_trainable_weights) == 2


def on_heads():
    return SentenceEncoder(WithHeads(Bert(17, 6, 2, 3, 11), {"tags": TaggingHead(3)}))


test_other_encoders_and_poolings_are_refused = refusals(
    (on_heads, "SentenceEncoder: the encoder must be a model with hidden_dim and pooler, as Bert;"),
    (lambda: built(pooling="max"), "pooling must be one of ('mean', 'cls'); received 'max'."),
)

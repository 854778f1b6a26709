"""Transformer models as parts of functional models whose inputs are of any length."""

import keras
import numpy as np
import pytest

from seqkeras.models import (
    GPT,
    Bert,
    ClassificationHead,
    MaskedLMHead,
    MultipleChoiceHead,
    SpanHead,
    TaggingHead,
    Transformer,
    WithHeads,
)
from tests.arrays import close, numbers, randomize
from tests.conftest import others_long

SIZES = {"hidden_dim": 6, "num_layers": 1, "num_heads": 3, "feed_forward_dim": 11, "max_length": 13}
TEXT = {"token_ids": 2, "lengths": 1}  # the rank of each input
TRANSLATION = TEXT | {"target_ids": 2}


def with_head(head):
    return WithHeads(Bert(17, **SIZES), {"task": head})


MODELS = {
    "bert": (lambda: Bert(17, **SIZES), {"token_ids": 2}),
    "bert_of_pairs": (lambda: Bert(17, **SIZES), TEXT | {"segment_ids": 2}),
    "gpt": (lambda: GPT(17, **SIZES), {"token_ids": 2}),
    "transformer": (lambda: Transformer(17, 17, **SIZES), TRANSLATION),
    "transformer_learned": (
        lambda: Transformer(17, 17, **SIZES, positions="learned"),
        TRANSLATION,
    ),
    "classes": (lambda: with_head(ClassificationHead(3)), TEXT),
    "tags": (lambda: with_head(TaggingHead(3)), TEXT),
    "spans": (lambda: with_head(SpanHead()), TEXT),
    "masked": (lambda: with_head(MaskedLMHead(17)), TEXT | {"masked_positions": 2}),
    "choices": (lambda: with_head(MultipleChoiceHead()), {"token_ids": 3, "lengths": 2}),
}


def example(ranks, length):
    values = np.random.default_rng(length)
    shape = (2, 3, length)[-ranks["token_ids"] :]
    limits = {"segment_ids": 2, "masked_positions": length}
    given = {name: values.integers(0, limits.get(name, 17), shape, "int32") for name in ranks}
    if "lengths" in ranks:
        given["lengths"] = values.integers(1, length + 1, shape[:-1], "int32")
    return given


@pytest.mark.parametrize("name", others_long(MODELS, 2))
def test_a_functional_model_of_open_length_is_the_model_itself(name):
    make, ranks = MODELS[name]
    model = make()
    inputs = {
        each: keras.Input((None,) * (rank - 1), dtype="int32", name=each)
        for each, rank in ranks.items()
    }
    functional = keras.Model(inputs, model(inputs))
    randomize(model)
    for length in (5, 13):
        given = example(ranks, length)
        found, expected = (keras.tree.flatten(numbers(each(given))) for each in (functional, model))
        for one, other in zip(found, expected, strict=True):
            close(one, other, atol=1e-5)

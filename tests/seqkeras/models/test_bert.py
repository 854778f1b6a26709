import numpy as np
import pytest

from seqkeras.models import Bert, presets
from tests import vectors
from tests.agreement import DTYPES, arrays_of, assert_agrees, count_parameters
from tests.arrays import close, numbers, randomize

SIZES = {"hidden_dim": 6, "num_layers": 2, "num_heads": 3, "feed_forward_dim": 11}
TOKENS = {"token_ids": np.array([[3, 8, 16, 2, 5], [7, 1, 4, 0, 0]])}


def built(**options):
    model = Bert(17, **SIZES, max_length=13, **options)
    model(TOKENS)
    return randomize(model)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bert_agrees_with_hugging_face(dtype):
    def call(model, given):
        return model({name: given[name] for name in ("token_ids", "segment_ids", "lengths")})

    assert_agrees(
        lambda: Bert(17, **SIZES, max_length=13),
        arrays_of(vectors.load("transformer"), "bert", dtype),
        dtype,
        call,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_distilbert_agrees_with_hugging_face(dtype):
    assert_agrees(
        lambda: Bert(17, **SIZES, max_length=13, num_segments=0, pooler=None),
        arrays_of(vectors.load("stacks"), "distilbert", dtype),
        dtype,
        lambda model, given: model({name: given[name] for name in ("token_ids", "lengths")}),
    )


def test_published_sizes_have_the_published_number_of_parameters():
    assert count_parameters(Bert(**presets.BERT_BASE)) == 109_482_240
    assert count_parameters(Bert(**presets.BERT_LARGE)) == 335_141_888


def test_one_text_without_padding_is_what_is_said_by_default():
    model = built()
    said = {"segment_ids": np.zeros((2, 5), int), "lengths": np.array([5, 5])}
    close(list(model(TOKENS).values()), list(model(TOKENS | said).values()))
    other = {"segment_ids": np.ones((2, 5), int)}
    changed = numbers(model(TOKENS | other)["pooled"])
    assert np.any(changed != numbers(model(TOKENS)["pooled"]))


def test_without_segments_bert_reads_none():
    model = built(num_segments=0)
    message = r"Bert: segment_ids must be left out, as num_segments is 0; received some\."
    with pytest.raises(ValueError, match=message):
        model(TOKENS | {"segment_ids": np.zeros((2, 5), int)})


def test_a_pooler_may_be_of_another_form_or_left_out():
    model, weights = built(pooler="relu"), built().get_weights()
    model.set_weights(weights)
    hidden = numbers(model(TOKENS)["hidden"])
    close(model(TOKENS)["pooled"], np.maximum(hidden[:, 0] @ weights[-2] + weights[-1], 0))
    bare = built(pooler=None)
    bare.set_weights(weights[:-2])
    assert list(bare(TOKENS)) == ["hidden"]
    close(bare(TOKENS)["hidden"], hidden)


def test_without_a_token_there_is_nothing_to_pool():
    nothing = {"token_ids": np.zeros((2, 0), int)}
    assert numbers(built(pooler=None)(nothing)["hidden"]).shape == (2, 0, 6)
    message = r"Bert: token_ids must have at least one step; received shape \(2, 0\)\."
    with pytest.raises(ValueError, match=message):
        built()(nothing)

import numpy as np
import pytest
from keras import ops

from seqkeras.embeddings import TokenEmbedding
from tests.agreement import difference
from tests.arrays import close, floats, gradients, needs_tensorflow, numbers, randomize

IDS = np.array([[3, 0, 10], [4, 4, 1]])


def built(**options):
    layer = TokenEmbedding(11, 7, **options)
    layer(IDS)
    return randomize(layer)


@pytest.mark.parametrize("scale", [False, True])
def test_tokens_are_rows_of_the_matrix_which_may_be_scaled_by_the_root_of_its_dim(scale):
    layer = built(scale=scale)
    close(layer(IDS), (np.sqrt(7) if scale else 1) * layer.get_weights()[0][IDS])


@pytest.mark.parametrize("scale", [False, True])
def test_logits_are_products_with_the_same_rows(scale):
    layer, hidden = built(scale=scale), floats(2, 3, 7)
    [E] = layer.get_weights()
    close(layer.logits(hidden), hidden @ E.T)


def test_both_uses_teach_the_one_matrix():
    layer = built()
    assert len(layer.weights) == 1
    [looked_up] = gradients(layer, lambda each: ops.sum(each(IDS)))
    expected = np.bincount(IDS.ravel(), minlength=11)[:, None] * np.ones(7)
    close(looked_up, expected)
    [tied] = gradients(layer, lambda each: ops.sum(each.logits(floats(5, 7))))
    assert difference(tied, np.ones((11, 1)) * floats(5, 7).sum(axis=0, dtype="float64")) < 1e-5


def test_half_precision_logits_are_in_float32_and_of_the_float32_matrix():
    layer = TokenEmbedding(11, 7, dtype="mixed_float16")
    looked_up = layer(IDS)
    randomize(layer)
    assert "float16" in str(looked_up.dtype)
    hidden = floats(2, 3, 7).astype("float16")
    logits = layer.logits(hidden)
    assert "float32" in str(logits.dtype)
    close(logits, hidden.astype("float32") @ layer.get_weights()[0].T)


def test_the_first_numbers_have_the_deviation_that_is_asked_for():
    for stddev, expected in ((None, 1 / 8), (0.02, 0.02)):
        layer = TokenEmbedding(499, 64, stddev=stddev)
        layer(IDS)
        assert np.std(numbers(layer.embeddings)) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("token_id", [-1, 11])
def test_an_id_beyond_the_vocabulary_is_refused(token_id):
    message = rf"TokenEmbedding: token_ids must be from 0 to 10, as .*; received {token_id}\."
    with pytest.raises(ValueError, match=message):
        built()(np.array([[1, token_id]]))


@needs_tensorflow
@pytest.mark.parametrize("dtype", ["int64", "int8", "uint16", "uint64"])
def test_integers_of_every_width_are_looked_up(dtype):
    import tensorflow as tf

    layer = built()
    graph = tf.function(layer, input_signature=[tf.TensorSpec([None, None], dtype)])
    close(graph(IDS.astype(dtype)), layer(IDS))

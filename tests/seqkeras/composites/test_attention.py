import importlib

import numpy as np
import pytest
from keras import ops

from seqkeras import composites
from tests import references
from tests.arrays import BACKEND, close, floats, needs_tensorflow, numbers, right_padded
from tests.autodiff import gradients_of
from tests.seqkeras.composites.test_nodes import composites_in

# B, N, T, S, H = 2, 3, 5, 7, 11
MASKS = {
    "none": None,
    "padding": right_padded([7, 3], 7)[:, None, None],
    "one for all": floats(1, 1, 5, 7, seed=3) > 0,
    "of each head": floats(2, 3, 5, 7, seed=4) > -0.5,
    "fully masked rows": floats(2, 3, 5, 7, seed=4) > np.array([-9, 9])[:, None, None, None],
}
every_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)


def tensors():
    return floats(2, 3, 5, 11), floats(2, 3, 7, 11, seed=1), floats(2, 3, 7, 11, seed=2)


def expected(query, key, value, mask, causal=False, scale=11**-0.5):
    seen = np.ones((2, 3, 5, 7), bool) if mask is None else np.broadcast_to(mask, (2, 3, 5, 7))
    if causal:
        seen = seen & (np.arange(7) <= np.arange(5)[:, None] + 2)
    heads = [
        references.attention(
            scale * references.dot_score(query[:, n], key[:, n]), value[:, n], seen[:, n]
        )
        for n in range(3)
    ]
    return np.stack([context for context, _ in heads], axis=1)


@pytest.mark.parametrize("causal", [False, True], ids=["whole", "causal"])
@every_mask
def test_attention_is_the_papers_formula(mask, causal):
    actual = composites.attention(*tensors(), mask, causal=causal)
    close(actual, expected(*tensors(), mask, causal))


def test_the_scale_of_the_products_may_be_given():
    actual = composites.attention(*tensors(), None, scale=0.7)
    close(actual, expected(*tensors(), None, scale=0.7))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [1, 300])
def test_half_precision_is_near_finite_and_zero_where_masked(dtype, size):
    mask = MASKS["fully masked rows"]
    halves = [ops.cast(size * each, dtype) for each in tensors()]
    actual = composites.attention(*halves, mask)
    assert dtype in str(actual.dtype)
    actual = numbers(ops.cast(actual, "float32"))
    assert np.all(np.isfinite(actual)) and np.all(actual[1] == 0)
    if size == 1:
        close(actual, expected(*tensors(), mask), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [1, 300])
def test_a_fully_masked_row_gives_no_gradient_and_no_nan(dtype, size):
    def loss(values):
        context = composites.attention(
            *(ops.cast(size * each, dtype) for each in values), MASKS["fully masked rows"]
        )
        return ops.sum(ops.cast(context, "float32"))

    for gradient in gradients_of(loss, tensors()):
        assert np.all(np.isfinite(gradient)) and np.all(gradient[1] == 0)
        assert size > 1 or np.any(gradient[0] != 0)


@pytest.mark.skipif(BACKEND == "tensorflow", reason="has no fused kernel")
@pytest.mark.parametrize("causal", [False, True], ids=["whole", "causal"])
@every_mask
def test_the_fused_kernel_gives_what_the_formula_gives(mask, causal, monkeypatch):
    fused = importlib.import_module("seqkeras.composites.attention")
    monkeypatch.setattr(fused, "on_gpu", lambda: True)
    close(composites.attention(*tensors(), mask, causal=causal), expected(*tensors(), mask, causal))


@pytest.mark.skipif(BACKEND != "jax", reason="cuDNN's kernel on JAX")
@pytest.mark.parametrize(("queries", "keys"), [(4, 6), (3, 6), (4, 5)])
def test_cudnn_on_jax_gets_masks_that_it_can_read(queries, keys, monkeypatch):
    fused = importlib.import_module("seqkeras.composites.attention")
    monkeypatch.setattr(fused, "on_gpu", lambda: True)
    asked = []

    def kernel(query, key, value, mask, scale, flash_attention):
        asked.append((tuple(mask.shape), flash_attention))
        return query

    monkeypatch.setattr(ops, "dot_product_attention", kernel)
    query, key = ops.ones((2, 3, queries, 8)), ops.ones((2, 3, keys, 8))
    composites.attention(query, key, key, ops.ones((2, 1, 1, keys), "bool"))
    even = queries % 2 == keys % 2 == 0
    assert asked == [((2, 1, queries, keys), None) if even else ((2, 1, 1, keys), False)]


@needs_tensorflow
@every_mask
def test_attention_as_a_node_gets_the_mask_as_it_is(mask):
    import tensorflow as tf

    @tf.function(autograph=False)
    def function(query, key, value, mask):
        with composites.as_nodes(("attention",)):
            return composites.attention(query, key, value, mask, causal=True, scale=0.5)

    inputs = [None if each is None else tf.constant(each) for each in (*tensors(), mask)]
    graph = function.get_concrete_function(*inputs)
    assert composites_in(graph) == [{"composite": "attention", "causal": True, "scale": 0.5}]
    close(graph(*inputs), composites.attention(*tensors(), mask, causal=True, scale=0.5))

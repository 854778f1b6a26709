import numpy as np
import pytest
import torch
from keras import ops

from seqkeras import composites
from tests.agreement import DOUBLE, assert_equals_torch, difference
from tests.arrays import floats, right_padded
from tests.autodiff import gradients_of
from tests.vectors.attention import outputs_and_gradients

SIZES = {"dim": 256, "num_heads": 8, "batch_size": 8, "target_length": 61}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "name, source_length, other_dims",
    [
        ("plain", 61, {}),
        ("cross", 67, {"key_dim": 71, "value_dim": 73}),
        ("padding", 67, {}),
        ("window", 61, {}),
        ("causal", 61, {}),
    ],
)
def test_multi_head_attention_of_real_sizes_is_that_of_torch(
    name, source_length, other_dims, dtype
):
    if dtype == "float64" and not DOUBLE:
        pytest.skip("Keras computes in float64 on TensorFlow only")
    arrays = outputs_and_gradients(name, dtype, source_length, **other_dims, **SIZES)
    assert_equals_torch(arrays, causal=name == "causal", dtype=dtype)


@pytest.mark.parametrize("causal", [False, True], ids=["whole", "causal"])
@pytest.mark.parametrize("masked", [False, True], ids=["unmasked", "masked"])
def test_the_composite_is_scaled_dot_product_attention_of_torch(masked, causal):
    arrays = [floats(4, 8, 127, 64, seed=seed) for seed in range(4)]
    mask = right_padded([127, 101, 64, 3], 127)[:, None, None] if masked else None
    *inputs, factors = (torch.from_numpy(each) for each in arrays)
    inputs = [each.requires_grad_() for each in inputs]
    seen = np.tri(127, dtype=bool) if causal else np.ones((127, 127), bool)
    seen = torch.from_numpy(seen if mask is None else seen & mask)
    expected = torch.nn.functional.scaled_dot_product_attention(*inputs, attn_mask=seen)
    (factors * expected).sum().backward()

    def attention(values):
        values = [ops.convert_to_tensor(each) for each in values]
        return composites.attention(*values, mask, causal=causal)

    def loss(values):
        return ops.sum(ops.multiply(arrays[3], attention(values)))

    assert difference(attention(arrays[:3]), expected.detach().numpy()) < 1e-5
    by_inputs = gradients_of(loss, arrays[:3])
    assert difference(by_inputs, [each.grad.numpy() for each in inputs]) < 1e-5

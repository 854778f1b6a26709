"""Self-attention of T5 beside transformers': its buckets, its table of biases, its contexts."""

import numpy as np
import pytest
import torch

from seqkeras.attention import DistanceBias, MultiHeadAttention
from tests.arrays import close, floats, numbers
from tests.parity.conftest import needs

D, N, H, T = 24, 3, 8, 301
SIZES = {"d_model": D, "num_heads": N, "d_kv": H}


@needs("transformers")
@pytest.mark.parametrize("is_decoder", [False, True], ids=["encoder", "decoder"])
def test_self_attention_of_t5_is_ours_with_a_distance_bias(is_decoder):
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    torch.manual_seed(0)
    config = T5Config(**SIZES, is_decoder=is_decoder, dropout_rate=0.0)
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).eval()
    x, bias = floats(2, T, D), DistanceBias(N, bidirectional=not is_decoder)
    bias.build()
    bias.set_weights([theirs.relative_attention_bias.weight.detach().numpy()])
    expected = theirs.compute_bias(T, T).detach().numpy()[0]
    distances = np.arange(T)[:, None] - np.arange(T)
    close(numbers(bias(distances)).transpose(2, 0, 1), expected)
    ours = MultiHeadAttention(N, H, use_bias=False, causal=is_decoder)
    ours(*[x] * 3)
    q, k, v, o = (
        getattr(theirs, name).weight.detach().numpy().T.astype("float64") for name in "qkvo"
    )
    q = q * H**0.5  # T5 does not divide the scores
    ours.set_weights([*(kernel.reshape(D, N, H) for kernel in (q, k, v)), o.reshape(N, H, D)])
    mask = np.where(is_decoder & (distances < 0), -1e30, 0).astype("float32")[None, None]
    with torch.no_grad():
        expected = theirs(torch.tensor(x), mask=torch.tensor(mask))[0].numpy()
    close(ours(*[x] * 3, distance_bias=bias), expected, rtol=1e-4, atol=1e-5)

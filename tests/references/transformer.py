"""The Transformer in float64 NumPy, a block at a time.

`weights` name the sublayers: "attention" and "cross_attention" (as `multi_head_attention` takes
them), "feed_forward" (kernel and bias, twice), and the (gain, bias) of each one's "..._norm".
"""

import numpy as np

from tests.references.attention import multi_head_attention


def sinusoids(positions, dim, form):
    """Vaswani et al. 2017, section 3.5 ("paper"); Tensor2Tensor's and Marian's code."""
    signal = np.zeros((*np.shape(positions), dim))
    for place in np.ndindex(np.shape(positions)):
        pos = int(positions[place])
        for k in range(dim):
            if form == "paper":
                wave = np.sin if k % 2 == 0 else np.cos
                signal[(*place, k)] = wave(pos / 10000 ** (2 * (k // 2) / dim))
            elif form == "tensor2tensor":
                # get_timing_signal_1d: min_timescale 1, max_timescale 1e4, zeros behind an odd end
                num_timescales = dim // 2
                if k >= 2 * num_timescales:
                    continue
                increment = np.log(1e4) / max(num_timescales - 1, 1)
                inv_timescale = np.exp(-increment * (k % num_timescales))
                wave = np.sin if k < num_timescales else np.cos
                signal[(*place, k)] = wave(pos * inv_timescale)
            else:
                half = (dim + 1) // 2
                wave = np.sin if k < half else np.cos
                signal[(*place, k)] = wave(pos / np.power(10000, 2 * (k % half) / dim))
    return signal


def layer_norm(x, gain, bias, epsilon):
    """Ba et al. 2016, section 3.1."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(variance + epsilon) + bias


def relu(x):
    return np.maximum(x, 0)


def gelu(x):
    """Hendrycks and Gimpel 2016, section 2: x P(X <= x), the normal density integrated."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    places = x[..., None] * (nodes + 1) / 2  # from 0 to x
    densities = np.exp(-(places**2) / 2) / np.sqrt(2 * np.pi)
    return x * (0.5 + x / 2 * (densities @ weights))


def gelu_tanh(x):
    """Hendrycks and Gimpel 2016, section 2, the approximation."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def silu(x):
    """Hendrycks and Gimpel 2016, section 2."""
    return x / (1 + np.exp(-x))


ACTIVATIONS = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}


def feed_forward(x, inner_kernel, inner_bias, outer_kernel, outer_bias, activation):
    """Vaswani et al. 2017, section 3.3."""
    return ACTIVATIONS[activation](x @ inner_kernel + inner_bias) @ outer_kernel + outer_bias


def transformer_block(
    x, mask, weights, *, activation, pre_norm, epsilon, encoded=None, encoded_mask=None
):
    """Vaswani et al. 2017, section 3.1, figure 1; pre-norm: Xiong et al. 2020, figure 1.

    `mask` (B, T, T) says what each position may attend to, `encoded_mask` (B, T, S) of the source.
    """

    def residual(name, x, sublayer):
        norm = weights[f"{name}_norm"]
        if pre_norm:
            return x + sublayer(layer_norm(x, *norm, epsilon))
        return layer_norm(x + sublayer(x), *norm, epsilon)

    def attend(name, query, key, mask):
        return multi_head_attention(query, key, key, mask, weights[name])[0]

    x = residual("attention", x, lambda h: attend("attention", h, h, mask))
    if encoded is not None:
        x = residual("cross", x, lambda h: attend("cross_attention", h, encoded, encoded_mask))
    return residual(
        "feed_forward", x, lambda h: feed_forward(h, *weights["feed_forward"], activation)
    )


def transformer_stack(x, mask, blocks, final_norm, *, pre_norm, epsilon, **options):
    """Blocks on top of each other; `final_norm` (gain, bias) behind pre-norm ones."""
    for weights in blocks:
        x = transformer_block(x, mask, weights, pre_norm=pre_norm, epsilon=epsilon, **options)
    return layer_norm(x, *final_norm, epsilon) if pre_norm else x


def causal(length):
    """Position t attends to s <= t."""
    return np.array([[[s <= t for s in range(length)] for t in range(length)]])

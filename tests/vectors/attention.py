"""What torch says of multi-head attention: outputs and gradients, with its masks."""

import functools

import numpy as np

from tests.vectors import in_both_dtypes

DIM, NUM_HEADS = 6, 3
CASES = {
    "plain": {"source_length": 5},
    "cross": {"source_length": 7, "key_dim": 11, "value_dim": 13},
    "padding": {"source_length": 5},
    "window": {"source_length": 5},
    "causal": {"source_length": 5},
}


def make():
    """The weights are in Keras's order and layout."""
    return in_both_dtypes(
        {
            name: functools.partial(outputs_and_gradients, name, **case)
            for name, case in CASES.items()
        }
    )


def outputs_and_gradients(
    name,
    dtype,
    source_length,
    dim=DIM,
    num_heads=NUM_HEADS,
    key_dim=None,
    value_dim=None,
    batch_size=2,
    target_length=5,
):
    """One case of `nn.MultiheadAttention`, its masks as Keras says them: True = may attend."""
    import torch

    key_dim, value_dim = key_dim or dim, value_dim or dim
    layer = torch.nn.MultiheadAttention(
        dim, num_heads, kdim=key_dim, vdim=value_dim, batch_first=True, dtype=getattr(torch, dtype)
    )
    random = np.random.default_rng(0)
    for parameter in layer.parameters():
        numbers = torch.from_numpy(random.normal(size=parameter.shape) / dim**0.5)
        parameter.data = numbers.to(parameter.dtype)
    shapes = {
        "query": (batch_size, target_length, dim),
        "key": (batch_size, source_length, key_dim),
        "value": (batch_size, source_length, value_dim),
        "factors": (batch_size, target_length, dim),
    }
    arrays = {each: random.normal(size=shape).astype(dtype) for each, shape in shapes.items()}
    tensors = {each: torch.from_numpy(array) for each, array in arrays.items()}
    inputs = [tensors[each].requires_grad_() for each in ("query", "key", "value")]
    masks, seen = _masks(name, batch_size, target_length, source_length)
    outputs, _ = layer(*inputs, need_weights=False, **masks)
    (tensors["factors"] * outputs).sum().backward()
    return {
        **arrays,
        **({} if seen is None else {"attention_mask": seen}),
        "outputs": outputs.detach().numpy(),
        **{f"gradient/{each}": tensors[each].grad.numpy() for each in ("query", "key", "value")},
        **{
            f"weight/{i}": each
            for i, each in enumerate(_as_keras(layer, num_heads, lambda p: p.detach()))
        },
        **{
            f"gradient/{i}": each
            for i, each in enumerate(_as_keras(layer, num_heads, lambda p: p.grad))
        },
    }


def _masks(name, batch_size, target_length, source_length):
    """torch's own masks, True = may not attend, and ours, unless the layer's option says it."""
    import torch

    t, s = np.arange(target_length)[:, None], np.arange(source_length)
    if name == "padding":
        lengths = source_length - 2 * np.arange(batch_size)
        seen = s < lengths[:, None, None]  # (B, 1, S)
        return {"key_padding_mask": torch.from_numpy(~seen[:, 0])}, seen
    if name == "window":
        seen = np.abs(t - s) <= 1
        return {"attn_mask": torch.from_numpy(~seen)}, seen[None]
    if name == "causal":
        return {"attn_mask": torch.from_numpy(s > t), "is_causal": True}, None
    return {}, None


def _as_keras(layer, num_heads, of):
    """Kernel (·, N, H) and bias (N, H) of query, key, value, then (N, H, D) and (D,)."""
    if layer.in_proj_weight is None:
        kernels = [
            of(each) for each in (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
        ]
    else:
        kernels = of(layer.in_proj_weight).chunk(3)
    for kernel, bias in zip(kernels, of(layer.in_proj_bias).chunk(3), strict=True):
        yield kernel.T.reshape(len(kernel.T), num_heads, -1).numpy()
        yield bias.reshape(num_heads, -1).numpy()
    yield of(layer.out_proj.weight).T.reshape(num_heads, len(bias) // num_heads, -1).numpy()
    yield of(layer.out_proj.bias).numpy()

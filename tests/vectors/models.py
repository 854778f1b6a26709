"""What torch says of the LSTM with a projection, `nn.LSTM(proj_size=...)`."""

import warnings

import numpy as np

NAMES = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "weight_hr_l0"]
OURS = ["kernel", "recurrent_kernel", "bias", "projection"]


def projected_lstm(batch_size, length, dim, units, projection_dim, seed=0, dtype="float32"):
    """Inputs, weights in our layout, outputs, and the gradients of the sum of their sines."""
    import torch

    torch.manual_seed(seed)
    kind = getattr(torch, dtype)
    layer = torch.nn.LSTM(dim, units, proj_size=projection_dim, batch_first=True, dtype=kind)
    layer.bias_hh_l0.data.zero_()  # the two biases are one
    sequences = torch.randn(batch_size, length, dim, dtype=kind, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # oneDNN has no projection, and torch says so
        outputs, _ = layer(sequences)
    torch.sin(outputs).sum().backward()
    weights = [getattr(layer, name) for name in NAMES]
    arrays = {"sequences": sequences, "outputs": outputs, "gradient/sequences": sequences.grad}
    for name, weight in zip(OURS, weights, strict=True):
        arrays[name], arrays[f"gradient/{name}"] = weight.t(), weight.grad.t()
    return {name: np.ascontiguousarray(each.detach().numpy()) for name, each in arrays.items()}


def make():
    return {f"projected_lstm/{name}": each for name, each in projected_lstm(2, 5, 7, 11, 3).items()}

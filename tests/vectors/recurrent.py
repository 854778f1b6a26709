"""What torch says of `nn.RNN`, `nn.LSTM`, `nn.GRU`: packed, in both directions, in two layers."""

import numpy as np

CELLS = {"rnn": ("RNN", [0]), "lstm": ("LSTM", [0, 1, 2, 3]), "gru": ("GRU", [1, 0, 2])}
# and where torch has each of Keras's gates: i, f, c, o, and r, z, n for z, r, h
LENGTHS = [7, 3, 5]
DIRECTIONS = {False: [""], True: ["", "_reverse"]}


def ours(array, gates):
    """A weight or bias of torch's as Keras lays it out: gates in its order, on the last axis."""
    parts = np.split(array, len(gates), axis=0)
    return np.ascontiguousarray(np.concatenate([parts[gate] for gate in gates], axis=0).T)


def weights_of(cell, arrays, suffix):
    """Kernel, recurrent kernel and bias of one layer and direction; torch has two biases."""
    gates = CELLS[cell][1]
    names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    kernel, recurrent, bias, recurrent_bias = (
        ours(arrays[f"{name}_{suffix}"], gates) for name in names
    )
    return [kernel, recurrent, np.stack([bias, recurrent_bias]) if cell == "gru" else bias]


def network(cell, lengths, dim, units, num_layers=1, bidirectional=False, dtype="float64", seed=0):
    """Inputs and weights in our layout, outputs, final states, and gradients of a weighted sum.

    Args:
        cell: "rnn", "lstm" or "gru".
        lengths: the real steps of each row; None: five rows of eleven steps, not packed.
        dim, units, num_layers, bidirectional, dtype: of the network.
        seed: of everything.

    Returns:
        Arrays by name; `weight_0` to `weight_N`, layer by layer, the forward direction first;
        `state_0` and so on, the LSTM's h and c of one layer and direction side by side; and
        `gradient/` before the name of what it is taken by.
    """
    import torch

    torch.manual_seed(seed)
    kind = getattr(torch, dtype)
    layer = getattr(torch.nn, CELLS[cell][0])(
        dim, units, num_layers, batch_first=True, bidirectional=bidirectional, dtype=kind
    )
    if cell != "gru":  # whose two biases are one
        for name, weight in layer.named_parameters():
            weight.data.mul_(not name.startswith("bias_hh"))
    batch_size, length = (5, 11) if lengths is None else (len(lengths), max(lengths))
    suffixes = [
        f"l{level}{direction}"
        for level in range(num_layers)
        for direction in DIRECTIONS[bidirectional]
    ]
    shape = len(suffixes), batch_size, units
    sequences = torch.randn(batch_size, length, dim, dtype=kind, requires_grad=True)
    initial = [
        torch.randn(*shape, dtype=kind, requires_grad=True) for _ in range(1 + (cell == "lstm"))
    ]
    outputs, final = run(layer, sequences, lengths, initial)
    results = [outputs, *final]
    upstream = [torch.randn_like(each) for each in results]
    sum((one * other).sum() for one, other in zip(results, upstream, strict=True)).backward()

    named = {"sequences": sequences, "outputs": outputs, "upstream/outputs": upstream[0]}
    named["gradient/sequences"] = sequences.grad
    arrays = {name: each.detach().numpy() for name, each in named.items()}
    for place in range(len(suffixes)):
        for kind_, first, last, out in zip("hc", initial, final, upstream[1:]):
            name = f"state_{place}{kind_}"
            arrays[name] = first[place].detach().numpy()
            arrays[f"final/{name}"] = last[place].detach().numpy()
            arrays[f"upstream/{name}"] = out[place].numpy()
            arrays[f"gradient/{name}"] = first.grad[place].numpy()
    values = {name: each.detach().numpy() for name, each in layer.named_parameters()}
    slopes = {name: each.grad.numpy() for name, each in layer.named_parameters()}
    for prefix, source in (("", values), ("gradient/", slopes)):
        weights = [each for suffix in suffixes for each in weights_of(cell, source, suffix)]
        arrays |= {f"{prefix}weight_{index}": each for index, each in enumerate(weights)}
    return arrays


def run(layer, sequences, lengths, initial):
    """Outputs (B, T, ·), zero behind the lengths, and the list of final states."""
    import torch

    states = tuple(initial) if len(initial) == 2 else initial[0]
    if lengths is None:
        outputs, final = layer(sequences, states)
    else:
        rows = torch.nn.utils.rnn
        packed = rows.pack_padded_sequence(sequences, lengths, True, enforce_sorted=False)
        outputs, final = layer(packed, states)
        outputs, _ = rows.pad_packed_sequence(outputs, batch_first=True)
    return outputs, list(final) if len(initial) == 2 else [final]


NETWORKS = {
    "one layer": {"num_layers": 1, "bidirectional": False},
    "two layers": {"num_layers": 2, "bidirectional": False},
    "two layers, both directions": {"num_layers": 2, "bidirectional": True},
}


def make():
    return {
        f"{cell}/{name}/{key}": each
        for cell in CELLS
        for name, options in NETWORKS.items()
        for key, each in network(cell, LENGTHS, 3, 5, **options).items()
    }

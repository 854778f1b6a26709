"""Lines of name maps that families share: the layers of torch, by their names in a state dict."""

from seqkeras.pretrained.assignment import LINEAR, LINEAR_OF_HEADS, VECTOR, Link

ATTENTION = ("query", "key", "value", "output")  # in the order of a tuple of names


def dense(name, layer):
    """Return links of `nn.Linear`, for `keras.layers.Dense`."""
    return [
        Link(f"{name}.weight", (layer.kernel,), LINEAR),
        Link(f"{name}.bias", (layer.bias,)),
    ]


def norm(name, layer):
    """Return links of `nn.LayerNorm`, for `LayerNorm`."""
    return [Link(f"{name}.weight", (layer.gamma,)), Link(f"{name}.bias", (layer.beta,))]


def attention(names, layer):
    """Return links of four `nn.Linear`, named in the order of `ATTENTION`, for
    `MultiHeadAttention`."""
    links = []
    for name, part in zip(names, ATTENTION, strict=True):
        layout = LINEAR_OF_HEADS if part == "output" else LINEAR
        links += [
            Link(f"{name}.weight", (getattr(layer, f"{part}_kernel"),), layout),
            Link(f"{name}.bias", (getattr(layer, f"{part}_bias"),), VECTOR),
        ]
    return links


def block(prefix, names, layer):
    """Return a block of an encoder or decoder.

    Args:
        prefix: prefix of every name.
        names: names of "attention", four of them, "attention_norm", "inner", "outer" and
            "feed_forward_norm"; of a decoder's "cross_attention" and "cross_norm" too.
        layer: an `EncoderBlock` or a `DecoderBlock`.
    """
    full = {
        part: [prefix + item for item in name] if isinstance(name, tuple) else prefix + name
        for part, name in names.items()
    }
    links = [
        *attention(full["attention"], layer.attention),
        *norm(full["attention_norm"], layer.attention_norm),
        *dense(full["inner"], layer.feed_forward.inner),
        *dense(full["outer"], layer.feed_forward.outer),
        *norm(full["feed_forward_norm"], layer.feed_forward_norm),
    ]
    if "cross_attention" in names:
        links += attention(full["cross_attention"], layer.cross_attention)
        links += norm(full["cross_norm"], layer.cross_norm)
    return links

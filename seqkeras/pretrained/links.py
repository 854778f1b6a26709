"""Lines of name maps that families share: the layers of torch, by their names in a state dict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqkeras.pretrained.assignment import LINEAR, LINEAR_OF_HEADS, VECTOR, Link

if TYPE_CHECKING:
    import keras

    from seqkeras.attention import MultiHeadAttention
    from seqkeras.transformer import LayerNorm
    from seqkeras.transformer.block import Block

ATTENTION = ("query", "key", "value", "output")  # in the order of a tuple of names


def dense(name: str, layer: keras.layers.Dense) -> list[Link]:
    """Return links of `nn.Linear`, for `keras.layers.Dense`."""
    return [
        Link(f"{name}.weight", (layer.kernel,), LINEAR),
        Link(f"{name}.bias", (layer.bias,)),
    ]


def norm(name: str, layer: LayerNorm) -> list[Link]:
    """Return links of `nn.LayerNorm`, for `LayerNorm`."""
    return [Link(f"{name}.weight", (layer.gamma,)), Link(f"{name}.bias", (layer.beta,))]


def attention(names: Sequence[str], layer: MultiHeadAttention) -> list[Link]:
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


def block(prefix: str, names: Mapping[str, Any], layer: Block) -> list[Link]:
    """Return a block of an encoder or decoder.

    Args:
        prefix: prefix of every name.
        names: names of "attention", four of them, "attention_norm", "inner", "outer" and
            "feed_forward_norm"; of a decoder's "cross_attention" and "cross_norm" too.
        layer: an `EncoderBlock` or a `DecoderBlock`.
    """
    full: dict[str, Any] = {
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

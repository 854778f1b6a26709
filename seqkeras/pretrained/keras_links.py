"""Lines of name maps that Google's BERT and KerasNLP share: layers as TensorFlow names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqkeras.pretrained.assignment import Link

if TYPE_CHECKING:
    import keras

    from seqkeras.transformer import LayerNorm


def dense(name: str, layer: keras.layers.Dense) -> list[Link]:
    """Return a kernel and a bias, for `keras.layers.Dense`."""
    return [Link(f"{name}/kernel", (layer.kernel,)), Link(f"{name}/bias", (layer.bias,))]


def norm(name: str, layer: LayerNorm) -> list[Link]:
    """Return links of gamma and beta, for `LayerNorm`."""
    return [Link(f"{name}/gamma", (layer.gamma,)), Link(f"{name}/beta", (layer.beta,))]

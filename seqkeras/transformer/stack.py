"""Stacked blocks, the base class of encoder and decoder."""

from typing import Any

import keras

from seqkeras.shapes import require_positive
from seqkeras.transformer.block import Block
from seqkeras.values import build_once, config_of_part


class BlockStack(keras.layers.Layer):
    """Base of `Encoder` and `Decoder`; a subclass names the class of its blocks.

    Args:
        block: the first block, which the others are like: each is made from its config and has
            separate weights.
        num_layers: L, how many blocks.
        distance_bias: a `DistanceBias` that self-attention of all blocks shares, or None.
        kwargs: arguments of every layer of Keras; the dtype is the block's, unless given.
    """

    block_class: type[Block]

    def __init__(
        self,
        block: keras.layers.Layer,
        num_layers: int,
        distance_bias: keras.layers.Layer | None = None,
        **kwargs,
    ):
        if not isinstance(block, self.block_class):
            raise ValueError(
                f"{type(self).__name__}: block must be of class {self.block_class.__name__}, as "
                f"{self.block_class.__name__}(512, 8, 2048); received {block!r}."
            )
        super().__init__(**{"dtype": block.dtype_policy, **kwargs})
        require_positive(self, num_layers=num_layers)
        config = block.get_config()
        others = [{**config, "name": f"block_{level}"} for level in range(1, num_layers)]
        self.blocks = [block, *(type(block).from_config(config) for config in others)]
        self.final_norm: Any = None
        if block.pre_norm:
            self.final_norm = block.make_norm(dtype=self.dtype_policy)
        if distance_bias is not None and distance_bias.num_heads != block.num_heads:
            raise ValueError(
                f"{type(self).__name__}: distance_bias must have the num_heads of the block, "
                f"{block.num_heads}; received {distance_bias.num_heads}."
            )
        self.distance_bias = distance_bias
        self.supports_masking = True

    def _build_blocks(self, sequence_shape, *others):
        for block in self.blocks:
            build_once(block, sequence_shape, *others)
        if self.final_norm is not None:
            build_once(self.final_norm, sequence_shape)
        if self.distance_bias is not None:
            build_once(self.distance_bias)

    def _normalise(self, sequence):
        return sequence if self.final_norm is None else self.final_norm(sequence)

    def get_config(self):
        parts = {"block": self.blocks[0], "distance_bias": self.distance_bias}
        parts = {name: config_of_part(part) for name, part in parts.items()}
        return {**super().get_config(), **parts, "num_layers": len(self.blocks)}

    @classmethod
    def from_config(cls, config):
        parts = {
            name: keras.saving.deserialize_keras_object(config.get(name))
            for name in ("block", "distance_bias")
        }
        return cls(**{**config, **parts})

"""Stacked blocks, the base class of encoder and decoder."""

import keras

from seqkeras.shapes import require_positive
from seqkeras.transformer.block import Block
from seqkeras.transformer.layer_norm import LayerNorm
from seqkeras.values import build_once, config_of_part


class BlockStack(keras.layers.Layer):
    """Base of `Encoder` and `Decoder`; a subclass names the class of its blocks.

    Args:
        block: the first block, which the others are like: each is made from its config and has
            separate weights.
        num_layers: L, how many blocks.
        kwargs: arguments of every layer of Keras; the dtype is the block's, unless given.
    """

    block_class: type[Block]

    def __init__(self, block, num_layers, **kwargs):
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
        self.final_norm = None
        if block.pre_norm:
            self.final_norm = LayerNorm(block.epsilon, dtype=self.dtype_policy)
        self.supports_masking = True

    def _build_blocks(self, sequence_shape, *others):
        for block in self.blocks:
            build_once(block, sequence_shape, *others)
        if self.final_norm is not None:
            build_once(self.final_norm, sequence_shape)

    def _normalise(self, sequence):
        return sequence if self.final_norm is None else self.final_norm(sequence)

    def get_config(self):
        block, num_layers = config_of_part(self.blocks[0]), len(self.blocks)
        return {**super().get_config(), "block": block, "num_layers": num_layers}

    @classmethod
    def from_config(cls, config):
        block = keras.saving.deserialize_keras_object(config["block"])
        return cls(**{**config, "block": block})

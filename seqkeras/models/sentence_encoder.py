"""A vector of a sentence, as sentence-transformers makes it."""

import keras
from keras import ops

from seqkeras.models.encoder_model import ENCODER_INPUTS, EncoderModel, mean_of_positions
from seqkeras.models.with_heads import require_encoder, serialize
from seqkeras.values import build_once

POOLINGS = ("mean", "cls")
SMALLEST = 1e-12  # smallest norm to divide by


@keras.saving.register_keras_serializable("seqkeras")
class SentenceEncoder(EncoderModel):
    """One vector for a text: the hidden states of an encoder, pooled.

        hidden = encoder(x)
        mean: v = (hidden(1) + ... + hidden(n)) / n, over the real positions
        cls:  v = hidden(1)
        y = v, or v / ||v||

    Notation: n is the length of the text.

    Args:
        encoder: a model that returns "hidden" (B, T, D), such as `Bert`; its `pooler`, if it is not
            None, has no use here and is no weight that this model trains.
        pooling: "mean" or "cls".
        normalize: whether y has length 1, so that a dot product of two is their cosine.

    Call arguments (one dictionary):
        token_ids, lengths, segment_ids: inputs of the encoder.

    Returns:
        (B, D), in float32 at least.

    Raises:
        ValueError: if the pooling is unknown, the encoder is something else, or the inputs are not
            those above.

    Reference: Reimers and Gurevych 2019, section 3, https://arxiv.org/abs/1908.10084

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import Bert, SentenceEncoder
        >>> bert = Bert(17, hidden_dim=8, num_layers=1, num_heads=2, feed_forward_dim=16)
        >>> vectors = SentenceEncoder(bert)({"token_ids": np.array([[2, 5, 3]])})
        >>> tuple(vectors.shape), round(float((np.asarray(vectors) ** 2).sum()), 4)  # of length 1
        ((1, 8), 1.0)
    """

    input_names = ENCODER_INPUTS[:1], ENCODER_INPUTS[1:]

    def __init__(
        self, encoder: keras.Model, pooling: str = "mean", normalize: bool = True, **kwargs
    ):
        super().__init__(**kwargs)
        require_encoder(self, encoder)
        if pooling not in POOLINGS:
            raise ValueError(
                f"SentenceEncoder: pooling must be one of {POOLINGS}; received {pooling!r}."
            )
        self.encoder = encoder
        self.pooling = pooling
        self.normalize = normalize

    def build(self, inputs_shape=None):
        build_once(self.encoder, inputs_shape)

    def call(self, inputs, training=False):
        self.require_inputs(inputs)
        hidden = self.encoder(inputs, training=training)["hidden"]
        hidden = ops.cast(hidden, keras.backend.result_type(hidden.dtype, "float32"))
        cls = self.pooling == "cls"
        pooled = hidden[:, 0] if cls else mean_of_positions(hidden, inputs.get("lengths"))
        if not self.normalize:
            return pooled
        squared = ops.sum(ops.square(pooled), axis=-1, keepdims=True)  # (B, 1)
        return pooled * ops.rsqrt(ops.maximum(squared, SMALLEST**2))

    def get_config(self):
        return {
            **super().get_config(),
            "encoder": serialize(self.encoder),
            "pooling": self.pooling,
            "normalize": self.normalize,
        }

    @classmethod
    def from_config(cls, config):
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(**{**config, "encoder": encoder})

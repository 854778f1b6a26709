"""BERT: a Transformer encoder that is trained on masked tokens and next sentences."""

from typing import Any

import keras
from keras import ops

from seqkeras.embeddings import TokenEmbedding
from seqkeras.embeddings.ids import require_ids
from seqkeras.embeddings.position import FORMS
from seqkeras.masks import padding_mask
from seqkeras.models.positions import (
    add_positions,
    bias_of_stack,
    position_vectors,
    relative_clip,
    require_kind,
)
from seqkeras.models.token_model import TokenModel
from seqkeras.shapes import require_counts, require_positive, require_steps
from seqkeras.transformer import Encoder, EncoderBlock, LayerNorm
from seqkeras.transformer.block import require_heads
from seqkeras.values import build_once

STDDEV = 0.02  # of what weights start as
POOLERS = ("tanh", "relu", None)


@keras.saving.register_keras_serializable("seqkeras")
class Bert(TokenModel):
    """Bidirectional encoder of a text, or of a pair of texts.

        x(t)   = dropout(norm(E token_id(t) + S segment_id(t) + P(t)))
        hidden = encoder(x(1..T)), post-norm blocks
        pooled = tanh(W hidden(1) + b)

    RoBERTa has one segment, and rows before the row of its first position; DistilBERT has no
    segments, and pools, where it does, by ReLU. With sinusoids E token_id(t) is multiplied by
    sqrt(D); relative positions and biases do without P.

    Args:
        vocab_size: V, the number of token ids.
        hidden_dim: D, the paper's H.
        num_layers: the paper's L.
        num_heads: N, which divides D; the paper's A.
        feed_forward_dim: F; 4 D in the paper.
        max_length: the number of learned positions.
        num_segments: how many texts a sequence may consist of; with 0, S is left out.
        activation: "gelu", "gelu_tanh", "relu" or "silu".
        dropout: dropout rate of the embeddings and of what each sublayer gives.
        attention_dropout: dropout rate of the attention weights.
        epsilon: epsilon of layer normalisation.
        pooler: the activation of pooled, "tanh" or "relu"; None leaves it out.
        first_position: how many rows P has before the first token's row.
        attention_window: r, the positions that self-attention sees at most; None for all.
        positions: "learned"; "paper", "tensor2tensor" or "marian" for sinusoids; "relative" or
            "bias": see `seqkeras.models.positions`.

    Call arguments (one dictionary):
        token_ids: (B, T) integers, padded on the right.
        lengths: (B,) integers, the real steps of each row; without them every step is real.
        segment_ids: (B, T) integers, to which text each token belongs; without them all are 0.

    Beside the dictionary, hidden_states=True asks for all layers, and attention=True for the
    attention weights of all heads.

    Returns:
        A dictionary of "hidden", (B, T, D), without a meaning at padded positions; "pooled", (B,
        D), made of the first position, if there is a pooler; "hidden_states", if asked for: a list
        of L + 1 tensors (B, T, D), the embeddings and what each block gives; and "attention", if
        asked for: a list of L tensors (B, N, T, T), without dropout. Padded positions have no
        weight; rows of padded queries have no meaning.

    Raises:
        ValueError: if a size is not positive, num_heads does not divide hidden_dim, an activation
            or a kind of positions is unknown, there are segment_ids and no segments, T is more than
            the learned positions, first_position is not 0 without them, an id known already is out
            of range, there is a pooler and no token, or the inputs are not those above.

    `seqkeras.models.WithHeads` puts tasks on it; `seqkeras.models.presets` has the paper's sizes.

    Reference: Devlin et al. 2019, section 3, https://arxiv.org/abs/1810.04805; Liu et al. 2019,
    "RoBERTa", https://arxiv.org/abs/1907.11692; Sanh et al. 2019, "DistilBERT", section 3,
    https://arxiv.org/abs/1910.01108

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import Bert
        >>> bert = Bert(17, hidden_dim=8, num_layers=2, num_heads=2, feed_forward_dim=16)
        >>> token_ids, lengths = np.array([[2, 5, 3], [2, 3, 0]]), np.array([3, 2])
        >>> outputs = bert({"token_ids": token_ids, "lengths": lengths})
        >>> tuple(outputs["hidden"].shape), tuple(outputs["pooled"].shape)
        ((2, 3, 8), (2, 8))
    """

    input_names = ["token_ids"], ["lengths", "segment_ids"]

    def __init__(
        self,
        vocab_size: int,
        hidden_dim: int,
        num_layers: int,
        num_heads: int,
        feed_forward_dim: int,
        max_length: int = 512,
        num_segments: int = 2,
        activation: str = "gelu",
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        epsilon: float = 1e-12,
        pooler: str | None = "tanh",
        first_position: int = 0,
        attention_window: int | None = None,
        positions: str = "learned",
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_heads(self, hidden_dim, num_heads)
        require_positive(self, max_length=max_length)
        require_counts(self, num_segments=num_segments, first_position=first_position)
        require_kind(self, positions)
        if first_position and positions != "learned":
            raise ValueError(
                'Bert: first_position must be 0 unless positions is "learned"; received '
                f"{first_position} and {positions!r}."
            )
        if pooler not in POOLERS:
            raise ValueError(f"Bert: pooler must be one of {POOLERS}; received {pooler!r}.")
        self.config: dict[str, Any] = {
            "vocab_size": vocab_size,
            "hidden_dim": hidden_dim,
            "num_layers": num_layers,
            "num_heads": num_heads,
            "feed_forward_dim": feed_forward_dim,
            "max_length": max_length,
            "num_segments": num_segments,
            "activation": activation,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "epsilon": epsilon,
            "pooler": pooler,
            "first_position": first_position,
            "attention_window": attention_window,
            "positions": positions,
        }
        policy = self.dtype_policy
        self.hidden_dim = hidden_dim
        stddev = None if positions in FORMS else STDDEV
        self.embedding = TokenEmbedding(
            vocab_size, hidden_dim, positions in FORMS, stddev, dtype=policy
        )
        self.segment_embedding = self.pooler = None
        if num_segments:
            self.segment_embedding = TokenEmbedding(
                num_segments, hidden_dim, stddev=STDDEV, dtype=policy, name="segment_embedding"
            )
        self.positions = position_vectors(
            positions, hidden_dim, policy, max_length, stddev=STDDEV, first_position=first_position
        )
        self.embedding_norm = LayerNorm(epsilon, dtype=policy)
        self.dropout = keras.layers.Dropout(dropout, dtype=policy)
        block = EncoderBlock(
            hidden_dim,
            num_heads,
            feed_forward_dim,
            activation,
            dropout=dropout,
            attention_dropout=attention_dropout,
            epsilon=epsilon,
            attention_window=attention_window,
            relative_clip=relative_clip(positions),
            dtype=policy,
            name="block_0",
        )
        bias = bias_of_stack(positions, num_heads, True, policy)
        self.encoder = Encoder(block, num_layers, bias)
        if pooler is not None:
            self.pooler = keras.layers.Dense(
                hidden_dim,
                pooler,
                kernel_initializer=keras.initializers.RandomNormal(stddev=STDDEV),
                dtype=policy,
                name="pooler",
            )

    @property
    def id_limits(self):
        segments = self.config["num_segments"]
        return {
            "token_ids": ("vocab_size", self.config["vocab_size"]),
            **({"segment_ids": ("num_segments", segments)} if segments else {}),
        }

    def build(self, inputs_shape=None):
        sequence = (None, None, self.hidden_dim)
        for layer in (self.embedding, self.segment_embedding, self.positions):
            if layer is not None:
                build_once(layer, (None, None))
        for layer in (self.embedding_norm, self.encoder):
            build_once(layer, sequence)
        if self.pooler is not None:
            build_once(self.pooler, (None, self.hidden_dim))

    def call(self, inputs, training=False, hidden_states=False, attention=False):
        x, mask = self._embed(inputs, training)
        states = self.encoder.hidden_states(x, mask, training)
        outputs = {"hidden": states[-1]}
        if self.pooler is not None:
            outputs["pooled"] = self._pool(inputs, states[-1])
        if hidden_states:
            outputs["hidden_states"] = states
        if attention:
            outputs["attention"] = self.encoder.attention_of(states, mask)
        return outputs

    def _pool(self, inputs, hidden):
        """Return (B, D), from the first token."""
        require_steps(self, token_ids=inputs["token_ids"])
        return self.pooler(hidden[:, 0])

    def hidden_states(self, inputs, training=False):
        """Return the embeddings and what each block gives: a list of L + 1 tensors (B, T, D)."""
        return self.encoder.hidden_states(*self._embed(inputs, training), training)

    def attention_weights(self, inputs):
        return {"encoder": self.encoder.attention_weights(*self._embed(inputs))}

    def _embed(self, inputs, training=False):
        """Return the embeddings (B, T, D), and the attention mask or None."""
        self.require_inputs(inputs)
        token_ids, lengths = inputs["token_ids"], inputs.get("lengths")
        length = ops.shape(token_ids)[1]
        x = add_positions(self.positions, self.embedding(token_ids), ops.arange(length)[None])
        segments = self._segments(token_ids, inputs.get("segment_ids"))
        x = x if segments is None else x + segments
        x = self.dropout(self.embedding_norm(x), training=training)
        return x, None if lengths is None else padding_mask(lengths, length)[:, None]

    def _segments(self, token_ids, segment_ids):
        """Return S segment_id(t), (B, T, D), or None."""
        num_segments = self.config["num_segments"]
        if segment_ids is None:
            segment_ids = ops.zeros_like(token_ids)
        elif not num_segments:
            raise ValueError(
                "Bert: segment_ids must be left out, as num_segments is 0; received some."
            )
        if not num_segments:
            return None
        require_ids(self, "segment_ids", segment_ids, "num_segments", num_segments)
        return self.segment_embedding(segment_ids)

    def get_config(self):
        return {**super().get_config(), **self.config}

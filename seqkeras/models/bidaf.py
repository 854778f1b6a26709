"""Bi-directional attention flow: the span of a context that answers a query."""

import keras
from keras import ops

from seqkeras.attention import BiAttention
from seqkeras.embeddings import CharacterCNN, Highway
from seqkeras.masks import padding_mask
from seqkeras.models.recurrent_stack import values_dtype
from seqkeras.models.token_model import TokenModel
from seqkeras.recurrent import LSTM, Bidirectional
from seqkeras.shapes import require_counts, require_positive
from seqkeras.values import BANNED_LOGIT, build_once

INPUTS = [
    f"{side}_{part}" for side in ("context", "query") for part in ("ids", "characters", "lengths")
]


@keras.saving.register_keras_serializable("seqkeras")
class BiDAF(TokenModel):
    """Six layers from the words of a context and a query to the ends of the answer.

        X, Q = highways([characters; words]), of the context and of the query    (1, 2)
        H, U = BiLSTM(X), BiLSTM(Q), the same one                                (3)
        G = [H; U~; H * U~; H * H~], attention in both directions                (4)
        M = BiLSTM(BiLSTM(G))                                                    (5)
        start_logits = w_1 [G; M]    end_logits = w_2 [G; BiLSTM(M)]             (6)

    Notation: the paper's letters, with positions as rows; its d is our units.

    Args:
        vocab_size: the number of word ids.
        embedding_dim: size of a word's embedding. The paper's are GloVe vectors that do not learn:
            set `word_embedding`'s weights, and its `trainable` to False.
        character_vocab_size: the number of character ids; id 0 is padding.
        character_dim: size of a character's embedding.
        character_filters: the number of convolutions over a word's characters.
        units: U, of each direction of each LSTM.
        character_width: width of the convolutions.
        num_highways: the number of highway layers.
        num_modelling_layers: the number of LSTMs from G to M.
        dropout: dropout rate of the characters' vectors, of each LSTM's inputs and before the
            logits.

    Call arguments (one dictionary):
        context_ids: (B, T) integers, the words of the context, padded on the right.
        context_characters: (B, T, W) integers, the characters of each word, padded with 0.
        context_lengths: (B,) integers, the real words of each context.
        query_ids, query_characters, query_lengths: (B, J), (B, J, W), (B,): the query.

    Returns:
        dictionary of "start_logits" and "end_logits", (B, T) each, in float32 at least;
        `BANNED_LOGIT` after the context's end.

    Raises:
        ValueError: if a size is not positive, num_highways is negative, an input is missing or
            unknown, or an id known already is out of range.

    Train it with `seqkeras.losses.span_loss` on both outputs; `seqkeras.decoding.best_spans` reads
    the answer from them.

    Reference: Seo et al. 2017, section 2, https://arxiv.org/abs/1611.01603

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import BiDAF
        >>> model = BiDAF(17, 6, 9, character_dim=4, character_filters=5, units=3)
        >>> inputs = {}
        >>> for text, length in [("context", 5), ("query", 2)]:
        ...     inputs[f"{text}_ids"] = np.ones((1, length), int)
        ...     inputs[f"{text}_characters"] = np.ones((1, length, 4), int)
        ...     inputs[f"{text}_lengths"] = np.array([length])
        >>> {name: tuple(logits.shape) for name, logits in model(inputs).items()}
        {'start_logits': (1, 5), 'end_logits': (1, 5)}
    """

    input_names = (INPUTS,)

    def __init__(
        self,
        vocab_size: int,
        embedding_dim: int,
        character_vocab_size: int,
        character_dim: int,
        character_filters: int,
        units: int,
        character_width: int = 5,
        num_highways: int = 2,
        num_modelling_layers: int = 2,
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.sizes = {
            "vocab_size": vocab_size,
            "embedding_dim": embedding_dim,
            "character_vocab_size": character_vocab_size,
            "character_dim": character_dim,
            "character_filters": character_filters,
            "units": units,
            "character_width": character_width,
            "num_modelling_layers": num_modelling_layers,
        }
        require_positive(self, **self.sizes)
        require_counts(self, num_highways=num_highways)
        policy = self.dtype_policy.name

        def bidirectional_lstm():
            return Bidirectional(LSTM(units, return_sequences=True, dtype=policy), dtype=policy)

        self.word_embedding = keras.layers.Embedding(vocab_size, embedding_dim, dtype=policy)
        self.character_cnn = CharacterCNN(
            character_vocab_size,
            character_dim,
            [character_width],
            [character_filters],
            "relu",
            dtype=policy,
        )
        self.highways = [Highway(dtype=policy) for _ in range(num_highways)]
        self.contextual = bidirectional_lstm()
        self.attention_flow = BiAttention(dtype=policy)
        self.modelling = [bidirectional_lstm() for _ in range(num_modelling_layers)]
        self.end_modelling = bidirectional_lstm()
        self.start_layer, self.end_layer = (
            keras.layers.Dense(1, dtype=values_dtype(self), name=name) for name in ("start", "end")
        )
        self.dropout = keras.layers.Dropout(dropout, dtype=policy)

    @property
    def id_limits(self):
        parts = {"ids": "vocab_size", "characters": "character_vocab_size"}
        return {
            f"{side}_{part}": (size, self.sizes[size])
            for side in ("context", "query")
            for part, size in parts.items()
        }

    def build(self, inputs_shape):
        sizes = self.sizes
        units = sizes["units"]
        words = (None, None, sizes["character_filters"] + sizes["embedding_dim"])
        encoded, flow = (None, None, 2 * units), (None, None, 8 * units)
        build_once(self.word_embedding, (None, None))
        build_once(self.character_cnn, (None, None, None))
        for layer in (*self.highways, self.contextual):
            build_once(layer, words)
        build_once(self.attention_flow, encoded, encoded)
        for layer, shape in zip(self.modelling, [flow, *[encoded] * len(self.modelling)]):
            build_once(layer, shape)
        build_once(self.end_modelling, encoded)
        for layer in (self.start_layer, self.end_layer):
            build_once(layer, (None, None, 10 * units))

    def call(self, inputs, training=False):
        self.require_inputs(inputs)
        self.check_ids(inputs)
        H, context_mask = self._encode(inputs, "context", training)  # (B, T, 2U)
        U, query_mask = self._encode(inputs, "query", training)  # (B, J, 2U)
        G = self.attention_flow(H, U, context_mask=context_mask, query_mask=query_mask)  # 8U
        M = G
        for layer in self.modelling:
            M = layer(self.dropout(M, training=training), mask=context_mask)  # (B, T, 2U)
        M2 = self.end_modelling(self.dropout(M, training=training), mask=context_mask)

        def logits(layer, M):
            features = self.dropout(ops.concatenate([G, M], axis=-1), training=training)
            return ops.where(context_mask, layer(features)[..., 0], BANNED_LOGIT)

        return {
            "start_logits": logits(self.start_layer, M),
            "end_logits": logits(self.end_layer, M2),
        }

    def attention_weights(self, inputs):
        self.require_inputs(inputs)
        context, context_mask = self._encode(inputs, "context", training=False)
        query, query_mask = self._encode(inputs, "query", training=False)
        to_query, to_context = self.attention_flow.attention_weights(
            context, query, context_mask, query_mask
        )
        return {
            "context_to_query": to_query[:, None, None],  # (B, 1, 1, T, J)
            "query_to_context": to_context[:, None, None, None],  # (B, 1, 1, 1, T)
        }

    def _encode(self, inputs, side, training):
        """Return layers 1 to 3 of one side, (B, T, 2U), and its padding mask (B, T)."""
        token_ids = inputs[f"{side}_ids"]
        mask = padding_mask(inputs[f"{side}_lengths"], ops.shape(token_ids)[1])
        characters = self.character_cnn(inputs[f"{side}_characters"])
        words = ops.concatenate(
            [self.dropout(characters, training=training), self.word_embedding(token_ids)], axis=-1
        )
        for highway in self.highways:
            words = highway(words)
        return self.contextual(self.dropout(words, training=training), mask=mask), mask

    def get_config(self):
        return {
            **super().get_config(),
            **self.sizes,
            "num_highways": len(self.highways),
            "dropout": self.dropout.rate,
        }

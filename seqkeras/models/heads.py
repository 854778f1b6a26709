"""Heads of tasks, which `seqkeras.models.WithHeads` puts on an encoder."""

import keras
from keras import ops

from seqkeras.embeddings import TokenEmbedding
from seqkeras.embeddings.ids import require_ids
from seqkeras.shapes import require_positive
from seqkeras.transformer import LayerNorm
from seqkeras.transformer.feed_forward import ACTIVATIONS, require_activation
from seqkeras.values import BANNED_LOGIT, build_once, without_padding

STDDEV = 0.02  # of what weights start as


class Head(keras.layers.Layer):
    """Base of the heads.

    `takes` names the call arguments of a head among what `WithHeads` knows: "hidden", all layers as
    "hidden_states" and "attention", "pooled", "padding_mask", and the model's inputs.

    Example:
        >>> import keras
        >>> import numpy as np
        >>> from seqkeras.models import Bert, WithHeads
        >>> from seqkeras.models.heads import Head
        >>> class FirstNumber(Head):
        ...     takes = ("pooled",)
        ...     def call(self, pooled, training=False):
        ...         return pooled[:, :1]
        >>> model = WithHeads(Bert(17, 8, 1, 2, 16), {"number": FirstNumber()})
        >>> tuple(model({"token_ids": np.array([[2, 5, 3]])})["number"].shape)
        (1, 1)
    """

    takes = ("pooled",)

    def _dense(self, units, name, activation=None):
        # Logits in float32 at least: half precision would lose small probabilities.
        dtype = keras.backend.result_type(self.compute_dtype, "float32")
        return keras.layers.Dense(
            units,
            activation,
            kernel_initializer=keras.initializers.RandomNormal(stddev=STDDEV),
            dtype=dtype,
            name=name,
        )


class _LinearHead(Head):
    """A linear map of one input, after dropout."""

    def __init__(self, num_outputs: int, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        require_positive(self, num_outputs=num_outputs)
        self.num_outputs = num_outputs
        self.dropout = dropout
        self.drop = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.output_layer = self._dense(num_outputs, "output")

    def _map(self, inputs, training):
        return self.output_layer(self.drop(inputs, training=training))


@keras.saving.register_keras_serializable("seqkeras")
class ClassificationHead(_LinearHead):
    """Classes of a sequence.

        logits = W dropout(pooled) + b

    Args:
        num_outputs: the number of classes.
        dropout: dropout rate of what is pooled.

    Call arguments:
        pooled: (B, D).

    Returns:
        (B, num_outputs) logits, in float32 at least.

    Raises:
        ValueError: if num_outputs is not positive.

    Reference: Devlin et al. 2019, section 4.1, https://arxiv.org/abs/1810.04805

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import Bert, ClassificationHead, WithHeads
        >>> bert = Bert(17, hidden_dim=8, num_layers=1, num_heads=2, feed_forward_dim=16)
        >>> model = WithHeads(bert, {"classes": ClassificationHead(3, dropout=0.1)})
        >>> tuple(model({"token_ids": np.array([[2, 5, 3]])})["classes"].shape)
        (1, 3)
    """

    def build(self, pooled_shape):
        build_once(self.output_layer, pooled_shape)

    def call(self, pooled, training=False):
        return self._map(pooled, training)


@keras.saving.register_keras_serializable("seqkeras")
class RegressionHead(_LinearHead):
    """Numbers of a sequence, as the similarity of two sentences.

        y = offset + scale (W dropout(pooled) + b)

    Args:
        num_outputs: how many numbers.
        dropout: dropout rate of what is pooled.
        offset, scale: mean and deviation of the targets, so that W learns numbers about 1 whatever
            the targets' unit is.

    Call arguments:
        pooled: (B, D).

    Returns:
        (B, num_outputs), in float32 at least.

    Raises:
        ValueError: if num_outputs or scale is not positive.

    Reference: Devlin et al. 2019, section 4.1 (STS-B), https://arxiv.org/abs/1810.04805

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.models import RegressionHead
        >>> head = RegressionHead(1, offset=2.5, scale=1.5)  # of targets from 0 to 5
        >>> ops.convert_to_numpy(head(np.zeros((1, 8)))).tolist()
        [[2.5]]
    """

    def __init__(
        self,
        num_outputs: int,
        dropout: float = 0.0,
        offset: float = 0.0,
        scale: float = 1.0,
        **kwargs,
    ):
        super().__init__(num_outputs, dropout, **kwargs)
        if scale <= 0:
            raise ValueError(f"RegressionHead: scale must be positive; received {scale}.")
        self.offset, self.scale = offset, scale

    def build(self, pooled_shape):
        build_once(self.output_layer, pooled_shape)

    def call(self, pooled, training=False):
        return self.offset + self.scale * self._map(pooled, training)


@keras.saving.register_keras_serializable("seqkeras")
class TaggingHead(_LinearHead):
    """A tag for each token.

        logits(t) = W dropout(hidden(t)) + b

    Args:
        num_outputs: the number of tags.
        dropout: dropout rate of the hidden states.

    Call arguments:
        hidden: (B, T, D).

    Returns:
        (B, T, num_outputs) logits, in float32 at least.

    Raises:
        ValueError: if num_outputs is not positive.

    Reference: Devlin et al. 2019, section 5.3, https://arxiv.org/abs/1810.04805

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import TaggingHead
        >>> tuple(TaggingHead(num_outputs=5)(np.ones((2, 7, 8))).shape)
        (2, 7, 5)
    """

    takes = ("hidden",)

    def build(self, hidden_shape):
        build_once(self.output_layer, hidden_shape)

    def call(self, hidden, training=False):
        return self._map(hidden, training)


@keras.saving.register_keras_serializable("seqkeras")
class NextSentenceHead(Head):
    """Whether the second text follows the first one.

        logits = W pooled + b;  class 0, it does; class 1, it is another

    Call arguments:
        pooled: (B, D).

    Returns:
        (B, 2) logits, in float32 at least.

    Reference: Devlin et al. 2019, section 3.1, task 2, https://arxiv.org/abs/1810.04805

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import Bert, NextSentenceHead, WithHeads
        >>> bert = Bert(17, hidden_dim=8, num_layers=1, num_heads=2, feed_forward_dim=16)
        >>> model = WithHeads(bert, {"next": NextSentenceHead()})
        >>> token_ids, segment_ids = np.array([[2, 5, 3, 7, 3]]), np.array([[0, 0, 0, 1, 1]])
        >>> tuple(model({"token_ids": token_ids, "segment_ids": segment_ids})["next"].shape)
        (1, 2)
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.output_layer = self._dense(2, "output")

    def build(self, pooled_shape):
        build_once(self.output_layer, pooled_shape)

    def call(self, pooled, training=False):
        return self.output_layer(pooled)


@keras.saving.register_keras_serializable("seqkeras")
class MultipleChoiceHead(Head):
    """Which of C choices fits, each read with the question as a separate sequence.

        logits(c) = w . dropout(pooled(c))

    A row of no token is no choice, and has `BANNED_LOGIT`: questions of a batch may have different
    numbers of choices.

    Args:
        dropout: dropout rate of what is pooled.

    Call arguments:
        pooled: (B, C, D).
        lengths: (B, C) integers, the tokens of each choice, or None.

    Returns:
        (B, C) logits, in float32 at least.

    Raises:
        ValueError: if pooled is not of rank 3.

    Reference: Devlin et al. 2019, section 4.4, https://arxiv.org/abs/1810.04805

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.models import MultipleChoiceHead
        >>> logits = MultipleChoiceHead()(np.zeros((1, 3, 8)), lengths=np.array([[4, 6, 0]]))
        >>> ops.convert_to_numpy(logits).tolist()  # the third row is no choice
        [[0.0, 0.0, -1000000000.0]]
    """

    takes = ("pooled", "lengths")

    def __init__(self, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        self.dropout = dropout
        self.drop = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.output_layer = self._dense(1, "output")

    def build(self, pooled_shape):
        if len(pooled_shape) != 3:
            raise ValueError(
                "MultipleChoiceHead: pooled must have shape (batch, choices, dim), as token_ids of "
                f"shape (batch, choices, length) make it; received {tuple(pooled_shape)}."
            )
        build_once(self.output_layer, pooled_shape)

    def call(self, pooled, lengths=None, training=False):
        logits = self.output_layer(self.drop(pooled, training=training))[..., 0]  # (B, C)
        if lengths is None:
            return logits
        return ops.where(lengths > 0, logits, ops.cast(BANNED_LOGIT, logits.dtype))


@keras.saving.register_keras_serializable("seqkeras")
class SpanHead(Head):
    """Where an answer starts and where it ends.

        start(t) = s . dropout(hidden(t))        end(t) = e . dropout(hidden(t))

    Where there is no answer both are position 0; `best_answers` finds that, or the span.

    Notation: s and e are the paper's S and E; each has a bias, as in the paper's code.

    Args:
        dropout: dropout rate of the hidden states, as DistilBERT has it; one for both.

    Call arguments:
        hidden: (B, T, D).
        padding_mask: (B, T) booleans, True for real positions, or None.

    Returns:
        A dictionary of "start_logits" and "end_logits", (B, T) each, in float32 at least,
        `BANNED_LOGIT` at padded positions.

    Reference: Devlin et al. 2019, sections 4.2 and 4.3, https://arxiv.org/abs/1810.04805

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.models import SpanHead
        >>> mask = np.array([[True, True, False]])
        >>> logits = SpanHead()(np.zeros((1, 3, 8)), padding_mask=mask)
        >>> ops.convert_to_numpy(logits["start_logits"]).tolist()
        [[0.0, 0.0, -1000000000.0]]
    """

    takes = ("hidden", "padding_mask")

    def __init__(self, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        self.dropout = dropout
        self.drop = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.output_layer = self._dense(2, "output")

    def build(self, hidden_shape):
        build_once(self.output_layer, hidden_shape)

    def call(self, hidden, padding_mask=None, training=False):
        (hidden,) = without_padding(padding_mask, hidden)
        logits = self.output_layer(self.drop(hidden, training=training))  # (B, T, 2)
        if padding_mask is not None:
            logits = ops.where(
                padding_mask[..., None], logits, ops.cast(BANNED_LOGIT, logits.dtype)
            )
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}


@keras.saving.register_keras_serializable("seqkeras")
class MaskedLMHead(Head):
    """The original token of a masked position.

        logits(t) = E norm(g(W hidden(t) + b)) + c

    Notation: E is a row for each token: the encoder's token embeddings where `WithHeads` ties them,
    and a matrix of the head's own where it stands alone or is not tied.

    Args:
        vocab_size: V.
        tied: whether `WithHeads` gives it the encoder's embeddings.
        epsilon: epsilon of layer normalisation.
        activation: g, "gelu", "gelu_tanh", "relu" or "silu".

    Call arguments:
        hidden: (B, T, D).
        masked_positions: (B, M) integers, for which positions; None for all.

    Returns:
        (B, M, V) logits, or (B, T, V), in float32 at least.

    Raises:
        ValueError: if the activation is unknown, the embeddings it is given are of another
            vocabulary, or a masked position known already is not under T.

    Reference: Devlin et al. 2019, section 3.1, task 1, https://arxiv.org/abs/1810.04805

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import Bert, MaskedLMHead, WithHeads
        >>> bert = Bert(17, hidden_dim=8, num_layers=1, num_heads=2, feed_forward_dim=16)
        >>> model = WithHeads(bert, {"tokens": MaskedLMHead(17)})
        >>> inputs = {"token_ids": np.array([[2, 4, 5, 3]]), "masked_positions": np.array([[1]])}
        >>> tuple(model(inputs)["tokens"].shape)
        (1, 1, 17)
    """

    takes = ("hidden", "masked_positions")

    def __init__(
        self,
        vocab_size: int,
        tied: bool = True,
        epsilon: float = 1e-12,
        activation: str = "gelu",
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_activation(self, activation)
        require_positive(self, vocab_size=vocab_size)
        self.activation = activation
        self.vocab_size = vocab_size
        self.tied = tied
        self.epsilon = epsilon
        self.embedding = None
        self.norm = LayerNorm(epsilon, dtype=self.dtype_policy)

    def tie(self, embedding):
        """Take the encoder's `TokenEmbedding`, if tied."""
        if self.vocab_size != embedding.vocab_size:
            raise ValueError(
                "MaskedLMHead: vocab_size must be the encoder's; "
                f"received {self.vocab_size} and {embedding.vocab_size}."
            )
        if self.tied:
            self.embedding = embedding

    def build(self, hidden_shape):
        dim = hidden_shape[-1]
        self.transform = self._dense(dim, "transform")
        build_once(self.transform, hidden_shape)
        build_once(self.norm, hidden_shape)
        if self.embedding is None:
            self.embedding = TokenEmbedding(
                self.vocab_size, dim, stddev=STDDEV, dtype=self.dtype_policy
            )
        build_once(self.embedding, (None, None))
        self.bias = self.add_weight(
            name="bias", shape=(self.vocab_size,), initializer="zeros", autocast=False
        )

    def call(self, hidden, masked_positions=None, training=False):
        if masked_positions is not None:
            length = ops.shape(hidden)[1]
            require_ids(self, "masked_positions", masked_positions, "the length", length)
            hidden = _rows_at(hidden, masked_positions)  # (B, M, D)
        transformed = self.norm(ACTIVATIONS[self.activation](self.transform(hidden)))
        return self.embedding.logits(transformed) + self.bias


def _rows_at(hidden, positions):
    """Return hidden(b, positions(b, m)), (B, M, D), as one gather of whole rows.

    `take_along_axis` would gather number by number.
    """
    batch_size, length, dim = ops.shape(hidden)
    begins = length * ops.arange(batch_size, dtype="int32")
    positions = ops.cast(positions, "int32") + begins[:, None]
    return ops.take(ops.reshape(hidden, (-1, dim)), positions, axis=0)

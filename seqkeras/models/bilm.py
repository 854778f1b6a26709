"""Bidirectional language model over characters, the model of ELMo.

It leaves out what the paper does not name: the clipping of states in the authors' code.
"""

from collections.abc import Sequence

import keras
from keras import ops

from seqkeras.composites.recurrent import keras_rnn
from seqkeras.embeddings import CharacterCNN, Highway
from seqkeras.masks import padding_mask
from seqkeras.models.recurrent_stack import values_dtype
from seqkeras.models.token_model import TokenModel
from seqkeras.shapes import require_counts, require_mask, require_positive, require_sequence
from seqkeras.values import build_once


class ProjectedLSTM(keras.layers.Layer):
    """Long short-term memory whose output is a projection, which is also what recurs.

        i, f, o = sigmoid(W x(t) + U h(t-1) + b), each with its own W, U, b
        g = tanh(W x(t) + U h(t-1) + b)
        c(t) = f * c(t-1) + i * g
        h(t) = P (o * tanh(c(t)))

    The bias of f starts at one, as in `LSTMCell`.

    Args:
        units: size of c.
        projection_dim: size of h.
        go_backwards: from the last step to the first; outputs stay in the order of the inputs.

    Call arguments:
        sequences: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None.

    Returns:
        (B, T, projection_dim), zero at masked steps.

    Raises:
        ValueError: if the sequences are not of rank 3, or the mask has another shape than they.

    Reference: Sak et al. 2014, section 2, https://arxiv.org/abs/1402.1128, without peepholes
    """

    def __init__(self, units, projection_dim, go_backwards=False, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.projection_dim = projection_dim
        self.go_backwards = go_backwards
        self.supports_masking = True

    def build(self, sequences_shape):
        require_sequence(self, sequences=sequences_shape)
        width = 4 * self.units  # in the order i, f, g, o
        self.kernel = self.add_weight(name="kernel", shape=(sequences_shape[-1], width))
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(self.projection_dim, width),
            initializer="orthogonal",
        )

        def ones_for_the_forget_gate(shape, dtype=None):
            gate = ops.arange(shape[0]) // self.units
            return ops.cast(gate == 1, dtype)

        self.bias = self.add_weight(
            name="bias", shape=(width,), initializer=ones_for_the_forget_gate
        )
        self.projection = self.add_weight(
            name="projection", shape=(self.units, self.projection_dim)
        )

    def call(self, sequences, mask=None):
        require_sequence(self, sequences=sequences.shape)
        require_mask(self, mask, sequences.shape)

        def step(x, states):
            h, c = states
            i, f, g, o = ops.split(x + ops.matmul(h, self.recurrent_kernel), 4, axis=-1)
            c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
            h = ops.matmul(ops.sigmoid(o) * ops.tanh(c), self.projection)
            return h, [h, c]

        batch_size = ops.shape(sequences)[0]
        start = [
            ops.zeros((batch_size, dim), self.compute_dtype)
            for dim in (self.projection_dim, self.units)
        ]
        _, outputs, _ = keras_rnn(
            step,
            ops.matmul(sequences, self.kernel) + self.bias,
            start,
            mask=mask,
            go_backwards=self.go_backwards,
            zero_output_for_mask=True,
        )
        return ops.flip(outputs, axis=1) if self.go_backwards else outputs


@keras.saving.register_keras_serializable("seqkeras")
class BiLM(TokenModel):
    """Two language models over words, one for each direction, that share all but their LSTMs.

        x(t) = projection(highways(CharacterCNN(word t)))
        f_1 = LSTM(x)    f_j = LSTM(f_{j-1}) + f_{j-1}    b_j alike, from the last word to the first
        forward_logits(t) = W f_L(t) + b, for word t + 1
        backward_logits(t) = W b_L(t) + b, for word t - 1

    Notation: x, j, L are the paper's; f_j and b_j are its h with an arrow to the right and to the
    left. It writes the logits of word t at t; ours stand where the words that they may see end.

    Args:
        vocab_size: V, the number of words that are predicted.
        character_vocab_size: the number of character ids; id 0 is padding.
        character_dim: size of a character's embedding.
        widths, filters: widths and filters of the `CharacterCNN`.
        units: size of each LSTM's memory.
        projection_dim: P, size of each LSTM's output, and of x.
        num_layers: L.
        num_highways: the number of highway layers.
        activation: activation of the `CharacterCNN`, "relu" or "tanh".
        dropout: dropout rate of each LSTM's inputs and before the logits.
        boundary_ids: two character ids, of the words of one character that begin and end each
            sentence of the training; None for none.

    Call arguments (one dictionary):
        character_ids: (B, T, W) integers, the characters of each word, padded with 0.
        lengths: (B,) integers, the real words of each row; without them every word is real.

    Returns:
        dictionary of "forward_logits" and "backward_logits", (B, T, V) each, in float32 at least.

    Raises:
        ValueError: if a size is not positive, an input is missing or unknown, or an id known
            already is out of range; from `CharacterCNN` if widths, filters or the activation do
            not fit.

    `represent` gives the layers that `LayerMix` weighs; with `boundary_ids` it reads each row
    between those two words, and gives the layers of the row. Train it, boundaries among the words,
    with the masked cross-entropy named in `seqkeras.losses`, on the word ids shifted by one to the
    left and to the right.

    Reference: Peters et al. 2018, sections 3.1 and 3.4, https://arxiv.org/abs/1802.05365

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import BiLM
        >>> model = BiLM(19, 11, 4, widths=[2], filters=[5], units=6, projection_dim=3)
        >>> character_ids = np.array([[[3, 1, 2], [4, 5, 0]]])  # two words
        >>> tuple(model({"character_ids": character_ids})["forward_logits"].shape)
        (1, 2, 19)
        >>> tuple(model.represent({"character_ids": character_ids}).shape)  # L + 1 = 3 layers
        (1, 3, 2, 6)
    """

    input_names = ["character_ids"], ["lengths"]

    def __init__(
        self,
        vocab_size: int,
        character_vocab_size: int,
        character_dim: int,
        widths: Sequence[int],
        filters: Sequence[int],
        units: int,
        projection_dim: int,
        num_layers: int = 2,
        num_highways: int = 2,
        activation: str = "relu",
        dropout: float = 0.0,
        boundary_ids: Sequence[int] | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(
            self, character_vocab_size=character_vocab_size, character_dim=character_dim
        )
        require_counts(self, num_highways=num_highways)
        if boundary_ids is not None and not (
            len(boundary_ids) == 2
            and all(0 < token < character_vocab_size for token in boundary_ids)
        ):
            raise ValueError(
                f"BiLM: boundary_ids must be two ids from 1 to {character_vocab_size - 1}; "
                f"received {boundary_ids}."
            )
        self.boundary_ids = None if boundary_ids is None else list(boundary_ids)
        self.sizes = {
            "vocab_size": vocab_size,
            "units": units,
            "projection_dim": projection_dim,
            "num_layers": num_layers,
        }
        require_positive(self, **self.sizes)
        policy = self.dtype_policy.name
        self.character_cnn = CharacterCNN(
            character_vocab_size, character_dim, widths, filters, activation, dtype=policy
        )
        self.highways = [Highway(dtype=policy) for _ in range(num_highways)]
        self.projection = keras.layers.Dense(projection_dim, dtype=policy)
        self.forward_layers, self.backward_layers = (
            [
                ProjectedLSTM(units, projection_dim, go_backwards, dtype=policy)
                for _ in range(num_layers)
            ]
            for go_backwards in (False, True)
        )
        self.dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.output_layer = keras.layers.Dense(vocab_size, dtype=values_dtype(self))

    @property
    def id_limits(self):
        return {"character_ids": ("character_vocab_size", self.character_cnn.vocab_size)}

    def build(self, inputs_shape):
        words = (None, None, sum(self.character_cnn.filters))
        projected = (None, None, self.sizes["projection_dim"])
        build_once(self.character_cnn, (None, None, None))
        for layer in (*self.highways, self.projection):
            build_once(layer, words)
        for layer in (*self.forward_layers, *self.backward_layers, self.output_layer):
            build_once(layer, projected)

    def call(self, inputs, training=False):
        _, forward, backward = self._encode(inputs, training)
        return {
            f"{direction}_logits": self.output_layer(self.dropout(layers[-1], training=training))
            for direction, layers in (("forward", forward), ("backward", backward))
        }

    def represent(self, inputs, training=False):
        """Return (B, L + 1, T, 2P): [x; x], then [f_j; b_j] of every layer j, for `LayerMix`."""
        is_bounded = self.boundary_ids is not None
        sentence = self._bounded(inputs) if is_bounded else inputs
        x, forward, backward = self._encode(sentence, training)
        layers = [
            ops.concatenate(pair, axis=-1)
            for pair in zip([x, *forward], [x, *backward], strict=True)
        ]
        layers = ops.stack(layers, axis=1)
        return layers[:, :, 1:-1] if is_bounded else layers

    def _bounded(self, inputs):
        """Return the inputs with a word that begins and a word that ends each row."""
        self.require_inputs(inputs)
        self.check_ids(inputs)
        character_ids = ops.convert_to_tensor(inputs["character_ids"])
        batch_size, length, width = ops.shape(character_ids)
        lengths = inputs.get("lengths")
        if lengths is None:
            lengths = ops.full((batch_size,), length)
        lengths = ops.cast(lengths, character_ids.dtype)[:, None]
        places = ops.arange(length + 2, dtype=character_ids.dtype)[None]  # (1, T + 2)
        begin, end = self.boundary_ids
        boundary = ops.where(places == 0, begin, ops.where(places == lengths + 1, end, 0))
        alone = ops.cast(ops.arange(width) == 0, character_ids.dtype)
        words = ops.pad(character_ids, [[0, 0], [1, 1], [0, 0]])
        bounded = (
            ops.where((places <= lengths)[..., None], words, ops.zeros_like(words))
            + alone * ops.cast(boundary, words.dtype)[..., None]
        )
        return {"character_ids": bounded, "lengths": lengths[:, 0] + 2}

    def _encode(self, inputs, training):
        """Return x (B, T, P), and the lists of each direction's layers, (B, T, P) each."""
        self.require_inputs(inputs)
        self.check_ids(inputs)
        character_ids, lengths = inputs["character_ids"], inputs.get("lengths")
        mask = None if lengths is None else padding_mask(lengths, ops.shape(character_ids)[1])
        x = self.character_cnn(character_ids)
        for highway in self.highways:
            x = highway(x)
        x = self.projection(x)
        directions = []
        for lstms in (self.forward_layers, self.backward_layers):
            layers = [x]
            for lstm in lstms:
                outputs = lstm(self.dropout(layers[-1], training=training), mask=mask)
                layers.append(outputs if layers[-1] is x else outputs + layers[-1])
            directions.append(layers[1:])
        return x, *directions

    def get_config(self):
        cnn = self.character_cnn
        return {
            **super().get_config(),
            **self.sizes,
            "character_vocab_size": cnn.vocab_size,
            "character_dim": cnn.embedding_dim,
            "widths": cnn.widths,
            "filters": cnn.filters,
            "num_highways": len(self.highways),
            "activation": cnn.activation,
            "dropout": self.dropout.rate,
            "boundary_ids": self.boundary_ids,
        }


@keras.saving.register_keras_serializable("seqkeras")
class LayerMix(keras.layers.Layer):
    """A learned mix of a model's layers, as ELMo gives it to a task.

        mix = gamma * sum over j of s_j h_j,  s = softmax(w)

    Args:
        layer_norm: bring each h_j to mean 0 and variance 1 first, each position by itself (the
            authors' code takes them over the batch, so that its rows meet).
        l2: the penalty l2 * |w|^2, which keeps the mix near the mean of the layers.

    Call arguments:
        layers: (B, L, T, D).

    Returns:
        (B, T, D).

    Raises:
        ValueError: if layers is not of rank 4 with a known number of layers.

    Reference: Peters et al. 2018, section 3.2, equation 1, and 3.3,
    https://arxiv.org/abs/1802.05365

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.models import LayerMix
        >>> layers = np.array([[[[1.0, 2.0]], [[3.0, 6.0]]]])  # two layers of one token
        >>> ops.convert_to_numpy(LayerMix()(layers)).tolist()  # their mean, before any training
        [[[2.0, 4.0]]]
    """

    def __init__(self, layer_norm: bool = False, l2: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        self.layer_norm = layer_norm
        self.l2 = l2

    def build(self, layers_shape):
        if len(layers_shape) != 4 or layers_shape[1] is None:
            raise ValueError(
                "LayerMix: layers must have shape (batch, layers, length, dim); "
                f"received {tuple(layers_shape)}."
            )
        self.scores = self.add_weight(
            name="scores",
            shape=(layers_shape[1],),
            initializer="zeros",
            regularizer=keras.regularizers.L2(self.l2) if self.l2 else None,
        )
        self.gamma = self.add_weight(name="gamma", shape=(), initializer="ones")
        self.normalize = keras.layers.LayerNormalization(
            center=False, scale=False, epsilon=1e-6, dtype=self.dtype_policy
        )

    def call(self, layers):
        if self.layer_norm:
            layers = self.normalize(layers)
        return self.gamma * ops.einsum("l,bltd->btd", ops.softmax(self.scores), layers)

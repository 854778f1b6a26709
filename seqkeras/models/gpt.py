"""GPT: a Transformer decoder as a language model. GPT-1's auxiliary losses are left out."""

import keras
from keras import ops

from seqkeras.embeddings import LearnedPositions, TokenEmbedding
from seqkeras.models.token_model import TokenModel
from seqkeras.transformer import Decoder
from seqkeras.transformer.block import require_heads
from seqkeras.values import build_once

STDDEV = 0.02  # of what weights start as


@keras.saving.register_keras_serializable("seqkeras")
class GPT(TokenModel):
    """Language model of causal self-attention, in the form of GPT-2 or of GPT-1.

        h_0(t) = E y(t) + P(t)        h_l(1..T) = block_l(h_{l-1}(1..T))
        logits(t) = E h_L(t), for y(t + 1)

    GPT-2's blocks are pre-norm, with one more normalisation behind the last; the last kernel of
    each of their 2 L sublayers starts as normal numbers of 0.02 / sqrt(2 L). GPT-1's are post-norm.

    Notation: E and P are the paper's W_e and W_p.

    Args:
        vocab_size: V, the number of token ids.
        hidden_dim: D.
        num_layers: L.
        num_heads: N, which divides D.
        feed_forward_dim: F; 4 D in the papers.
        max_length: the number of learned positions.
        activation: "gelu_tanh", "gelu", "relu" or "silu".
        pre_norm: True for GPT-2, False for GPT-1.
        dropout: of the embeddings and of what each sublayer gives.
        attention_dropout: of the attention weights.
        epsilon: of layer normalisation.
        attention_window: r: self-attention sees no further than so many positions; None for all.

    Call arguments (one dictionary):
        token_ids: (B, T) integers, padded on the right, if at all. No position sees a later one, so
            lengths change nothing but which logits have a meaning.
        lengths: (B,) integers, the real tokens of each row, which may be left out.

    Returns:
        logits: (B, T, V), in float32 at least.

    Raises:
        ValueError: if a size is not positive, num_heads does not divide hidden_dim, the activation
            is unknown, T is more than max_length, or a token id known already is not under V.

    Train it with the masked cross-entropy named in `seqkeras.losses`. `read` and `step` go on from
    a state, which holds the key/value cache; `step` is the contract of `seqkeras.decoding`.

    Reference: Radford et al. 2018, section 3.1 ("Improving Language Understanding by Generative
    Pre-Training"); Radford et al. 2019, section 2.3 ("Language Models are Unsupervised Multitask
    Learners"), https://github.com/openai/gpt-2
    """

    input_names = ["token_ids"], ["lengths"]

    def __init__(
        self,
        vocab_size,
        hidden_dim,
        num_layers,
        num_heads,
        feed_forward_dim,
        max_length,
        activation="gelu_tanh",
        pre_norm=True,
        dropout=0.0,
        attention_dropout=0.0,
        epsilon=1e-5,
        attention_window=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_heads(self, hidden_dim, num_heads)
        self.config = {
            "vocab_size": vocab_size,
            "hidden_dim": hidden_dim,
            "num_layers": num_layers,
            "num_heads": num_heads,
            "feed_forward_dim": feed_forward_dim,
            "max_length": max_length,
            "activation": activation,
            "pre_norm": pre_norm,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "epsilon": epsilon,
            "attention_window": attention_window,
        }
        self.max_length = max_length
        policy = self.dtype_policy
        self.embedding = TokenEmbedding(vocab_size, hidden_dim, stddev=STDDEV, dtype=policy)
        self.positions = LearnedPositions(max_length, hidden_dim, STDDEV, dtype=policy)
        self.dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.decoder = Decoder(
            num_layers,
            hidden_dim,
            num_heads,
            feed_forward_dim,
            activation,
            pre_norm,
            dropout,
            attention_dropout,
            epsilon=epsilon,
            cross_attention=False,
            residual_stddev=STDDEV / (2 * num_layers) ** 0.5 if pre_norm else None,
            attention_window=attention_window,
            dtype=policy,
        )

    @property
    def vocab_size(self):
        return self.config["vocab_size"]

    @property
    def state_entries(self):
        """What the state holds, in order (see `seqkeras.decoding`)."""
        return self.decoder.cache_entries

    @property
    def id_limits(self):
        return {"token_ids": ("vocab_size", self.config["vocab_size"])}

    def build(self, inputs_shape=None):
        build_once(self.embedding, (None, None))
        build_once(self.positions, (None, None))
        build_once(self.decoder, (None, None, self.config["hidden_dim"]))

    def call(self, inputs, training=False):
        self.require_inputs(inputs)
        token_ids = inputs["token_ids"]
        x = self._embed(token_ids, ops.arange(ops.shape(token_ids)[1])[None])
        x = self.decoder(self.dropout(x, training=training), training=training)  # (B, T, D)
        return self.embedding.logits(x)

    def initial_state(self, batch_size, max_length=None):
        """The state before any token, for one beam (see `state_entries`).

        Args:
            batch_size: B.
            max_length: how many tokens the cache has room for; None for all learned positions.

        Raises:
            ValueError: if max_length is more than there are positions.
        """
        build_once(self)  # not in a step: JAX can make no weights inside a loop
        cache_length = self.max_length if max_length is None else max_length
        require_positions(self, cache_length, self.max_length)
        return self.decoder.initial_cache(batch_size, cache_length)

    def read(self, token_ids, lengths=None, state=None):
        """A piece of text, after another.

        Args:
            token_ids: (B, T) integers, padded on the right; T may be 0.
            lengths: (B,) integers, or None if every token is real.
            state: the state behind the piece before, of one beam; None at the beginning, with room
                for all max_length tokens. Every step attends to all of that room: `initial_state`
                with as many tokens as are needed is cheaper.

        Returns:
            (B, T, V) logits, and the state behind each row's last real token.

        Raises:
            ValueError: if the lengths are not those of the token_ids, or the state is another
                model's.
        """
        build_once(self)
        self.require_inputs({"token_ids": token_ids, "lengths": lengths})
        if state is None:
            state = self.initial_state(ops.shape(token_ids)[0])
        self._require_state(state)
        if token_ids.shape[1] == 0:
            return self.embedding.logits(self.embedding(token_ids)), state
        lengths = None if lengths is None else lengths[:, None]
        hidden, state = self._hidden(token_ids[:, None], state, lengths)
        return self.embedding.logits(hidden[:, 0]), state

    def _require_state(self, state):
        names = [entry.name for entry in self.state_entries]
        if sorted(names) != sorted(state):
            raise ValueError(
                f"GPT: the state must hold what initial_state gives, {names}; received "
                f"{list(state)}."
            )

    def step(self, token_ids, state):
        """One token of every beam, the step contract of `seqkeras.decoding`.

        A search refuses more tokens than the cache has room for.

        Args:
            token_ids: (B, K) integers, the last token of each of K beams.
            state: entries (B, K, ...).

        Returns:
            (logits (B, K, V),), and the new state.
        """
        return self.read_beams(token_ids[..., None], state)

    def read_beams(self, token_ids, state):
        """Some tokens of every beam, as `step` takes one.

        Args:
            token_ids: (B, K, T) integers.
            state: entries (B, K, ...), or caches as `transformer.Decoder.read` takes them too.

        Returns:
            (logits (B, K, V) behind the last one,), and the new state.

        Raises:
            ValueError: if there is no token.
        """
        if token_ids.shape[-1] == 0:
            raise ValueError(
                "GPT: token_ids must hold at least one token of every beam; received shape "
                f"{tuple(token_ids.shape)}."
            )
        hidden, state = self._hidden(token_ids, state)
        return (self.embedding.logits(hidden[:, :, -1]),), state

    def _hidden(self, token_ids, state, lengths=None):
        """(B, K, T) further tokens to (B, K, T, D), and the new state."""
        positions = state["position"][..., None] + ops.arange(ops.shape(token_ids)[2])
        if lengths is not None:  # what is padded has no position
            positions = ops.minimum(positions, self.max_length - 1)
        x, _, state = self.decoder.read(self._embed(token_ids, positions), state, lengths=lengths)
        return x, state

    def _embed(self, token_ids, positions):
        return self.embedding(token_ids) + self.positions(positions)

    def get_config(self):
        return {**super().get_config(), **self.config}


def require_positions(model, length, max_length):
    """Raise a ValueError if so many positions are more than there are."""
    if not 1 <= length <= max_length:
        raise ValueError(
            f"{type(model).__name__}: a sequence must have from 1 to max_length, {max_length}, "
            f"positions; received {length}."
        )

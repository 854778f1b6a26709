"""The frame of the recurrent decoders: many steps in training, one in decoding, for any wiring."""

import functools

import keras
from keras import ops

from seqkeras.composites.recurrent import keras_rnn
from seqkeras.decoding import StateEntry
from seqkeras.embeddings import TokenEmbedding
from seqkeras.models.never_generated import id_problems, without
from seqkeras.models.rnn_cells import (
    config_of,
    is_qrnn,
    make_cell,
    require_cell,
    state_names,
    with_objects,
)
from seqkeras.models.teacher_forcing import TeacherForcing
from seqkeras.recurrent import RNN, StackedCells
from seqkeras.shapes import require_positive, require_steps
from seqkeras.values import build_once, without_padding


class RNNDecoder(keras.layers.Layer):
    """Base of the recurrent decoders; a subclass defines the inputs of its cell and of its logits.

        s(t) = RNN(x(t), s(t-1))        logits(t) = V hidden(t)

    A subclass fills `advance`, one step that makes features; `build_step` and `first_state` go with
    it. hidden(t) is tanh(W_o features(t) + b), or without a readout the first U features. With tied
    weights V is the matrix of the embeddings, and hidden(t) is of their size, E.

    Args:
        vocab_size: V.
        embedding_dim: E, the size of the embedded previous output y(t-1); None where it is not fed.
        units: U, size of each state.
        cell: "gru", "lstm", "simple_rnn", or a pattern of another (`seqkeras.models.rnn_cells`).
        num_layers: number of layers of the decoder.
        dropout: dropout rate of the embeddings and before the logits.
        readout: whether there is a hidden layer between features and logits.
        tie_weights: take the embeddings as the matrix of the logits.
        never_generated: ids whose logit is `BANNED_LOGIT` in `step`, which generates: padding,
            unknown, begin. `seqkeras.tokenizers.special_ids` knows a tokenizer's ids.
        teacher_forcing: how often, while training, y(t-1) is the given token and not the one
            predicted: a number from 0 to 1, or a `seqkeras.schedules` schedule.
        teacher_forcing_per: "token" or "batch", for which of them one draw decides.

    Call arguments:
        target_ids: (B, T) integers, `<bos>` and all target tokens but the last.
        values: (B, S, D), the encoder's states.
        initial_state: list of (B, U), the states of the lowest layer first; None for one that
            starts at zero, but not for the first.
        context: (B, D), one for the whole source; for decoders without attention.
        source_mask: (B, S) booleans, True for real steps of the source, or None.

    Returns:
        logits: (B, T, V).

    Raises:
        ValueError: if a size is not positive, the cell does not fit, never_generated is not in the
            vocabulary, there is nothing to force or to tie, or the target has no step.

    Tied weights: Press and Wolf 2017, https://arxiv.org/abs/1608.05859
    """

    parallel: bool
    attention = None
    is_hard = False

    def __init__(
        self,
        vocab_size,
        embedding_dim,
        units,
        cell="gru",
        num_layers=1,
        dropout=0.0,
        readout=True,
        tie_weights=False,
        never_generated=(0, 1, 2),
        teacher_forcing=1.0,
        teacher_forcing_per="token",
        **kwargs,
    ):
        super().__init__(**kwargs)
        fed = embedding_dim is not None
        sizes = {"vocab_size": vocab_size, "units": units, "num_layers": num_layers}
        require_positive(self, **sizes, **({"embedding_dim": embedding_dim} if fed else {}))
        require_cell(self, cell)
        never_generated = list(never_generated)
        self._refuse(id_problems(never_generated, vocab_size))
        if is_qrnn(cell):
            self._refuse([f"cell must not be a QRNN, which reads sources only; received {cell!r}."])
        self.cell_config = functools.partial(config_of, cell)  # hides it from Keras's tracking
        self.options = {
            **sizes,
            "embedding_dim": embedding_dim,
            "dropout": dropout,
            "readout": readout,
            "tie_weights": tie_weights,
            "never_generated": never_generated,
            "teacher_forcing": keras.saving.serialize_keras_object(teacher_forcing),
            "teacher_forcing_per": teacher_forcing_per,
        }
        policy = {"dtype": self.dtype_policy}
        self.vocab_size = vocab_size
        self.units = units
        self.output_dim = embedding_dim or 1
        self.never_generated = never_generated
        self.teacher_forcing = TeacherForcing(teacher_forcing, teacher_forcing_per, **policy)
        if not (fed or self.teacher_forcing.always):
            self._refuse(
                [
                    "a decoder that is not fed the output has nothing to force: teacher_forcing "
                    f"must be 1; received {teacher_forcing!r}."
                ]
            )
        hidden_dim = embedding_dim if tie_weights and readout else units
        if tie_weights and (not fed or hidden_dim != embedding_dim):
            self._refuse(
                [
                    "tie_weights needs embeddings that are fed, and a readout or units of their "
                    f"size; received {embedding_dim} and {units}."
                ]
            )
        self.tie_weights = tie_weights
        make_embedding = TokenEmbedding if tie_weights else keras.layers.Embedding
        self.embedding = make_embedding(vocab_size, embedding_dim, **policy) if fed else None
        cells = [make_cell(cell, units, **policy) for _ in range(num_layers)]
        self.cell = StackedCells(cells, **policy)
        self.rnn = RNN(self.cell, return_sequences=True, **policy)
        names, levels = state_names(cell), range(num_layers)
        self.recurrent_names = (  # the states of each layer, h first
            [names]
            if num_layers == 1
            else [[f"{name}_{level}" for name in names] for level in levels]
        )
        self.readout = keras.layers.Dense(hidden_dim, "tanh", **policy) if readout else None
        self.dropout = keras.layers.Dropout(dropout, **policy)
        # In float32 at least: BANNED_LOGIT is over float16's range.
        exact = keras.backend.result_type(self.compute_dtype, "float32")
        self.output_layer = None if tie_weights else keras.layers.Dense(vocab_size, dtype=exact)

    def _refuse(self, problems):
        """Raise a ValueError with every problem, if there is one."""
        problems = list(problems)
        if problems:
            raise ValueError(f"{type(self).__name__}: {' '.join(problems)}")

    def build_step(self, value_dim):
        """Build what the step needs, and set `own_entries`: the state but for the cell's.

        Args:
            value_dim: size of the encoder's states.

        Returns:
            The sizes of x and of the features.
        """
        raise NotImplementedError

    def first_state(self, context, values, mask):
        """Return the `own_entries` before the first step, by name, from what the encoder made.

        Args:
            context: (B, C), one for the whole source.
            values: (B, S, D), its states.
            mask: (B, S) booleans, True for real steps.
        """
        raise NotImplementedError

    def advance(self, y, state, run):
        """Advance K beams by one step.

        Where no step needs more of the step before than the cell's states (`parallel`), the K beams
        may as well be the steps of one target, and `run` the cell over all of them.

        Args:
            y: (B, K, E), the embedded previous output, or a one where it is not fed.
            state: state of every beam.
            run: (x, state) -> (s, state), the cell.

        Returns:
            features (B, K, F), attention weights (B, K, S), of several heads (B, N, K, S), or None,
            and the new state.
        """
        raise NotImplementedError

    @property
    def query_name(self):
        """The highest layer's h, which asks where the decoder attends."""
        return self.recurrent_names[-1][0]

    @property
    def _cell_states(self):
        return [name for names in self.recurrent_names for name in names]

    @property
    def state_entries(self):
        """Entries of the state, in order (see `seqkeras.decoding`)."""
        recurrent = [StateEntry(name, "beam", (self.units,)) for name in self._cell_states]
        return [*recurrent, *self.own_entries]

    def build(self, target_ids_shape, values_shape):
        value_dim = values_shape[-1]
        input_dim, features_dim = self.build_step(value_dim)
        if self.embedding is not None:
            build_once(self.embedding, (None, None))
        build_once(self.rnn, (None, None, input_dim))
        if self.readout is not None:
            build_once(self.readout, (None, None, features_dim))
        if self.output_layer is not None:
            build_once(self.output_layer, (None, None, self.units))
        build_once(self.teacher_forcing, (None, None))

    def call(
        self,
        target_ids,
        values,
        initial_state,
        context=None,
        source_mask=None,
        training=False,
    ):
        (values,) = without_padding(source_mask, values)
        state = self.start(values, initial_state, context, source_mask)
        return self.decode(target_ids, state, training)

    def start(self, values, initial_state, context=None, source_mask=None):
        """Return the state before the first step: a dictionary of the entries in `state_entries`.

        Args:
            values, initial_state, context, source_mask: see the call; values whose padding holds
                numbers.

        Returns:
            Per-beam entries (B, 1, ...), one beam; per-source entries (B, ...).
        """
        if source_mask is None:
            source_mask = ops.ones(ops.shape(values)[:2], "bool")
        first = [None if state is None else state[:, None] for state in initial_state]
        first = [ops.zeros_like(first[0]) if state is None else state for state in first]
        entries = self.first_state(context, values, source_mask)
        return {**dict(zip(self._cell_states, first, strict=True)), **entries}

    def decode(self, target_ids, state, training=False):
        """Return logits (B, T, V) of all steps from a state of `start`."""
        require_steps(self, target_ids=target_ids)
        if training and not self.teacher_forcing.always:
            features = self._unroll_sampling(target_ids, state)
        elif self.parallel:
            if "position" in state:
                state = {**state, "position": ops.arange(ops.shape(target_ids)[1])[None]}
            embedded = self._embed(target_ids, training)
            features, _, _ = self.advance(embedded, state, self._run_steps)
        else:
            features = self._unroll(self._embed(target_ids, training), state)
        return self._logits(features, training)

    def step(self, token_ids, state):
        """Advance every beam: (B, K) last tokens -> ((logits, weights if any), new state)."""
        (logits, weights), state = self._step(token_ids, state)
        if weights is not None and len(weights.shape) == 4:
            weights = ops.mean(weights, axis=1)
        return (logits, *(() if weights is None else (weights,))), state

    def step_by_heads(self, token_ids, state):
        """Advance like `step`, with the weights (B, K, 1, N, S) of each head."""
        (logits, weights), state = self._step(token_ids, state)
        weights = weights if len(weights.shape) == 4 else weights[:, None]  # (B, N, K, S)
        return (logits, ops.transpose(weights, (0, 2, 1, 3))[:, :, None]), state

    def _step(self, token_ids, state):
        state = {name: ops.convert_to_tensor(value) for name, value in state.items()}
        embedded = self._embed(token_ids, training=False)
        features, weights, state = self.advance(embedded, state, self._run_beams)
        logits = without(self._logits(features, training=False), self.never_generated)
        return (logits, weights), state

    def attention_weights(self, target_ids, state):
        """Return (B, 1, N, T, S): how much each head attends to the source at each step, one by
        one.

        Args:
            target_ids: (B, T) integers, `<bos>` and all target tokens but the last.
            state: the result of `start`.
        """
        steps = []
        for t in range(target_ids.shape[1]):
            embedded = self._embed(target_ids[:, t : t + 1], training=False)
            _, weights, state = self.advance(embedded, state, self._run_beams)
            steps.append(weights if len(weights.shape) == 4 else weights[:, None])
        return ops.concatenate(steps, axis=2)[:, None]

    def _embed(self, token_ids, training):
        if self.embedding is None:
            return ops.cast(ops.ones_like(token_ids), self.compute_dtype)[..., None]
        return self.dropout(self.embedding(token_ids), training=training)  # (B, K, E)

    def _logits(self, features, training):
        hidden = self.readout(features) if self.readout else features[..., : self.units]
        hidden = self.dropout(hidden, training=training)
        return self.embedding.logits(hidden) if self.tie_weights else self.output_layer(hidden)

    def _run_beams(self, x, state):
        """Advance the cell of every beam: (B, K, D) -> (B, K, U), and the new state."""
        beams = ops.shape(x)[:2]
        tensors = [x, *[state[name] for name in self._cell_states]]
        x, *states = (
            ops.reshape(tensor, (-1, tensor.shape[-1])) for tensor in tensors
        )  # (B K, ...)
        _, states = self.cell(x, states)
        states = [ops.reshape(rows, (*beams, self.units)) for rows in states]
        state = {**state, **dict(zip(self._cell_states, states, strict=True))}
        return state[self.query_name], state

    def _run_steps(self, x, state):
        """Run the cell over all steps of one beam: (B, T, D) -> (B, T, U)."""
        return self.rnn(x, initial_state=[state[name][:, 0] for name in self._cell_states]), state

    def _unroll(self, embedded, state):
        """Return the features (B, T, F) of a target (B, T, E), one step after the other."""

        def step(y, carried):
            features, _, after = self._advance_one(y, carried, state)
            return features, self._carried(after)

        _, features, _ = keras_rnn(step, embedded, self._carried(state))
        return features

    def _unroll_sampling(self, target_ids, state):
        """Unroll like `_unroll`; y(t-1) is the most probable token where no target token is
        given."""
        forced = ops.cast(self.teacher_forcing(target_ids), self.compute_dtype)[..., None]
        embedded = self.embedding(target_ids)
        noise = self.dropout(ops.ones_like(embedded), training=True)  # drawn outside of the loop
        inputs = ops.concatenate([forced * noise * embedded, (1 - forced) * noise], axis=-1)

        def step(inputs, carried):
            *carried, predicted = carried
            y, sampled = ops.split(inputs, 2, axis=-1)
            y = y + sampled * self.embedding(predicted)[:, 0]
            features, _, after = self._advance_one(y, carried, state)
            logits = without(self._logits(features[:, None], training=False), self.never_generated)
            predicted = ops.cast(ops.argmax(logits, axis=-1), "int32")
            return features, [*self._carried(after), predicted]

        nothing = ops.zeros((ops.shape(target_ids)[0], 1), "int32")
        _, features, _ = keras_rnn(step, inputs, [*self._carried(state), nothing])
        return features

    def _carried(self, state):
        return [state[entry.name] for entry in self.state_entries if entry.per == "beam"]

    def _advance_one(self, y, carried, state):
        """Advance one beam by y (B, E); return features (B, F), weights (B, 1, S) and the state."""
        names = [entry.name for entry in self.state_entries if entry.per == "beam"]
        state = {**state, **dict(zip(names, carried, strict=True))}
        features, weights, state = self.advance(y[:, None], state, self._run_beams)
        return features[:, 0], weights, state

    def get_config(self):
        return {**super().get_config(), "cell": self.cell_config(), **self.options}

    @classmethod
    def from_config(cls, config):
        return cls(**with_objects(config, "cell", "attention", "teacher_forcing"))

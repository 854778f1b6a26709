"""Decoders without a model, and how a backend compiles."""

import numpy as np
from keras import ops

from seqkeras.decoding import MinLength, Prefix, StateEntry, beam, greedy
from tests.arrays import BACKEND, numbers

BOS, EOS = 2, 3  # as in serving.text
VOCAB_SIZE, SOURCE_LENGTH, PLACES = 7, 11, 101


class Automaton:
    """A decoder that needs its state: logits and attention depend on source and all tokens before.

    Per beam the state is a place that the prefix leads to; per source, tables by place.
    """

    state_entries = [
        StateEntry("place", "beam", (), "int32"),
        StateEntry("logits", "source", (PLACES, VOCAB_SIZE)),
        StateEntry("attention", "source", (PLACES, "source_length")),
    ]

    def __init__(self, seed, eos=0.0, sources=5):
        random = np.random.default_rng(seed)
        self.sources = sources
        self.table = random.normal(0, 2, (sources, PLACES, VOCAB_SIZE)).astype("float32")
        self.table[:, :, EOS] += random.normal(eos, 2, (sources, 1))
        self.lengths = random.integers(2, SOURCE_LENGTH + 1, sources)
        self.source_mask = np.arange(SOURCE_LENGTH) < self.lengths[:, None]
        weights = random.normal(0, 2, (sources, PLACES, SOURCE_LENGTH))
        weights = np.exp(weights) * self.source_mask[:, None]
        self.weights = (weights / weights.sum(axis=-1, keepdims=True)).astype("float32")

    @property
    def initial_state(self):
        return {
            "place": np.zeros((self.sources, 1), "int32"),
            "logits": self.table,
            "attention": self.weights,
        }

    def step(self, token_ids, state):
        place = (7 * state["place"] + token_ids) % PLACES  # (B, K)
        logits, weights = (
            ops.take_along_axis(state[name], place[:, :, None], axis=1)
            for name in ("logits", "attention")
        )
        return (logits, weights), {**state, "place": place}

    def _place(self, prefix):
        place = 0
        for token in prefix:
            place = (7 * place + token) % PLACES
        return place

    def logits(self, row, prefix):
        return self.table[row, self._place(prefix)]

    def attention(self, row, prefix):
        """Of the real source positions."""
        return self.weights[row, self._place(prefix), : self.lengths[row]]


class Uniform(Automaton):
    """Full of ties: in every place three tokens are equally probable, and no others."""

    def __init__(self, seed, sources=5):
        super().__init__(seed, sources=sources)
        order = np.argsort(self.table, axis=-1)
        self.table = np.where(order < 3, 0.0, -1e9).astype("float32")


def compiled(function, *arrays):
    """`function(*arrays)` as this backend compiles it; open in batch and lengths in TensorFlow."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        specs = [tf.TensorSpec([None] * np.ndim(each), each.dtype) for each in arrays]
        return tf.function(function, input_signature=specs, autograph=False)(*arrays)
    if BACKEND == "jax":
        import jax

        return jax.jit(function)(*arrays)
    return function(*arrays)


def process(processor, logits, token_ids, length):
    """NumPy (B, K, V) logits after a processor; the first `length` of the (B, K, T) ids count."""
    token_ids = ops.convert_to_tensor(token_ids, "int32")
    prompt_lengths = ops.zeros_like(token_ids[:, 0, 0])
    prefix = Prefix(token_ids, ops.convert_to_tensor(length, "int32"), prompt_lengths)
    return numbers(processor(ops.convert_to_tensor(logits), prefix))


TABLE_SEARCHES = {
    "greedy": {"num_beams": 1},
    "never": {"num_beams": 3, "early_stopping": "never"},
    "prompt": {"num_beams": 3, "early_stopping": "never"},
    "true": {"num_beams": 3, "early_stopping": True},
    "min_length": {"num_beams": 3, "early_stopping": "never", "processors": [MinLength(5, EOS)]},
}


def search_table(name, table, prompts, max_length):
    """What `tests.vectors.decoding` asks of Hugging Face: (B, K, T) ids, (B, K) scores, NumPy.

    The decoder is a table of logits by place; the first token of each prompt is its start.
    """

    def step(token_ids, state):
        place = (7 * state["place"] + token_ids) % len(table)
        return (ops.take(table, place, axis=0),), {"place": place}

    starts, rest = prompts[:, 0], prompts[:, 1:]
    options = {"start_id": starts, "end_id": EOS, "max_length": max_length}
    if rest.size:
        options["prompt"] = rest, np.full(len(rest), rest.shape[1])
    state = {"place": np.zeros((len(starts), 1), "int32")}
    if name == "greedy":
        token_ids, _, scores = numbers(greedy(step, state, **options))
        return token_ids[:, None], scores[:, None]
    options |= {"state_entries": [StateEntry("place", "beam", (), "int32")], "n_best": 3}
    token_ids, _, scores = numbers(beam(step, state, **TABLE_SEARCHES[name], **options))
    return token_ids, scores

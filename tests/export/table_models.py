"""The decoder of `tests.vectors.decoding`, a table of logits by place, as models that export.

Tokens y(1..n) lead from place p to 7^n p + sum_i 7^(n-i) y(i), modulo the number of places.
"""

import keras
import numpy as np
from keras import ops

from seqkeras.decoding import StateEntry
from tests.seqkeras.decoding.toys import PLACES

START = 0  # the encoder-decoder's <bos>
POWERS = np.array([pow(7, exponent, PLACES) for exponent in range(PLACES)], "int32")
BACK = pow(7, -1, PLACES)  # from place BACK p the token 0 leads to p


class Table(keras.Model):
    """What both have."""

    state_entries = [StateEntry("place", "beam", (), "int32")]

    def __init__(self, table):
        super().__init__()
        self.table = self.add_weight(name="table", shape=table.shape)
        self.table.assign(table)

    def logits(self, place):
        return ops.take(self.table, place, axis=0)


class EncoderDecoder(Table):
    """A source is what `generate` of a language model would go on from."""

    @property
    def target_vocab_size(self):
        return self.table.shape[1]

    def encode(self, token_ids, lengths):
        place = walk(0, token_ids, ops.cast(lengths, "int32")[:, None])
        return {"place": (BACK * place % PLACES)[:, None]}

    def step(self, token_ids, state):
        place = (7 * state["place"] + ops.cast(token_ids, "int32")) % PLACES
        return (self.logits(place),), {"place": place}


class LanguageModel(Table):
    @property
    def vocab_size(self):
        return self.table.shape[1]

    def initial_state(self, batch_size):
        return {"place": ops.zeros((batch_size, 1), "int32")}

    def step(self, token_ids, state):
        return self.read_beams(token_ids[..., None], state)

    def read_beams(self, token_ids, state):
        lengths = ops.shape(token_ids)[-1] + ops.zeros_like(state["place"])[..., None]
        place = walk(state["place"], token_ids, lengths)
        return (self.logits(place),), {"place": place}


def walk(place, token_ids, lengths):
    """The places where (..., T) tokens lead from (...) places; (..., 1) lengths are real."""
    exponents = lengths - 1 - ops.arange(ops.shape(token_ids)[-1], dtype="int32")
    powers = ops.take(POWERS, ops.maximum(exponents, 0))
    terms = ops.where(exponents >= 0, ops.cast(token_ids, "int32") * powers, 0)
    return (place * ops.take(POWERS, lengths[..., 0]) + ops.sum(terms, axis=-1)) % PLACES

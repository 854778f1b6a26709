"""Every public layer and model: how to build it with arguments of its own, and a tiny input.

Sizes are distinct primes. `tests/properties` holds for all of it.
"""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np

from seqkeras.attention import AdditiveScore, Attention
from seqkeras.models import RNNSeq2Seq
from seqkeras.recurrent import (
    GRU,
    LSTM,
    Bidirectional,
    GRUCell,
    LSTMCell,
    SimpleRNN,
    SimpleRNNCell,
)
from tests.arrays import floats, randomize, right_padded

B, T, S, D, U = 2, 3, 5, 7, 11


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A layer or model, and what the properties must know of it.

    Args:
        name: of the test.
        make: () -> the layer, not built.
        inputs: () -> its call arguments by name; a model takes them as one dictionary.
        lengths: argument -> the axis along which padding may be added at the end.
        mask: the argument that masks steps or positions, if there is one.
    """

    name: str
    make: Callable
    inputs: Callable
    lengths: dict = dataclasses.field(default_factory=dict)
    mask: str | None = None

    def build(self):
        """The layer with random weights."""
        layer = self.make()
        call(layer, self.inputs())
        return randomize(layer)

    def padded(self, inputs, steps):
        """The inputs with padding added: masked where there is a mask, and full of numbers."""
        return inputs | {
            name: np.pad(
                inputs[name],
                [(0, steps if each == axis else 0) for each in range(inputs[name].ndim)],
                constant_values=False if name == self.mask else 13,
            )
            for name, axis in self.lengths.items()
        }


def call(layer, inputs, **options):
    """The outputs, as a layer takes its inputs or as a model does."""
    if isinstance(layer, keras.Model):
        return layer(inputs, **options)
    return layer(**inputs, **options)


def step_inputs(num_states):
    states = [floats(B, U, seed=index) for index in range(num_states)]
    return lambda: {"inputs": floats(B, D), "states": states}


def sequence_inputs():
    return {"sequence": floats(B, S, D), "mask": right_padded([5, 3], S)}


def recurrent_case(layer_class):
    def make():
        return layer_class(U, return_sequences=True, return_state=True, go_backwards=True)

    lengths = {"sequence": 1, "mask": 1}
    return Case(layer_class.__name__, make, sequence_inputs, lengths, mask="mask")


def bidirectional_case(layer_class):
    def make():
        return Bidirectional(layer_class(U, return_sequences=True, return_state=True))

    name, lengths = f"Bidirectional({layer_class.__name__})", {"sequence": 1, "mask": 1}
    return Case(name, make, sequence_inputs, lengths, mask="mask")


def last_output_case(layer_class):
    name, lengths = f"{layer_class.__name__}, last output", {"sequence": 1, "mask": 1}
    return Case(name, lambda: layer_class(U), sequence_inputs, lengths, mask="mask")


def attention_inputs():
    return {
        "query": floats(B, T, D),
        "key": floats(B, S, U),
        "value": floats(B, S, 13),
        "attention_mask": np.stack([right_padded([5, 2, 1], S), right_padded([3, 4, 5], S)]),
    }


def score_inputs():
    return {"query": floats(B, T, D), "key": floats(B, S, U)}


def translation_inputs():
    random = np.random.default_rng(0)
    return {
        "token_ids": random.integers(1, 17, (B, S)),
        "lengths": np.array([5, 3]),
        "target_ids": random.integers(1, 19, (B, T)),
    }


def seq2seq_case(cell):
    def make():
        return RNNSeq2Seq(
            source_vocab_size=17,
            target_vocab_size=19,
            embedding_dim=7,
            units=11,
            decoder_units=13,
            cell=cell,
            dropout=0.3,
            never_generated=[0, 5],
        )

    lengths = {"token_ids": 1, "target_ids": 1}
    return Case(f"RNNSeq2Seq({cell})", make, translation_inputs, lengths)


CELLS = [
    Case("SimpleRNNCell", lambda: SimpleRNNCell(U), step_inputs(1)),
    Case("LSTMCell", lambda: LSTMCell(U), step_inputs(2)),
    Case("GRUCell", lambda: GRUCell(U), step_inputs(1)),
]
RECURRENT = [recurrent_case(each) for each in (SimpleRNN, LSTM, GRU)]
BIDIRECTIONAL = [bidirectional_case(each) for each in (SimpleRNN, LSTM, GRU)]
ATTENTION = [
    Case("AdditiveScore", lambda: AdditiveScore(13), score_inputs, {"query": 1, "key": 1}),
    Case(
        "Attention(AdditiveScore)",
        lambda: Attention(AdditiveScore(17)),
        attention_inputs,
        {"key": 1, "value": 1, "attention_mask": 2},
        mask="attention_mask",
    ),
]
LAYERS = [
    *CELLS,
    *RECURRENT,
    *(last_output_case(each) for each in (SimpleRNN, LSTM, GRU)),
    *BIDIRECTIONAL,
    *ATTENTION,
]
MODELS = [seq2seq_case("gru"), seq2seq_case("lstm")]
CASES = LAYERS + MODELS

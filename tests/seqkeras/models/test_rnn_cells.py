"""Models of any cell: a pattern does what a name does, and one that does not fit is refused."""

import keras
import numpy as np
import pytest

from seqkeras.models import Forecaster, RecurrentStack, RNNLanguageModel
from seqkeras.recurrent import QRNN, GRUCell, LSTMCell, StackedCells
from tests.arrays import close, floats, numbers, randomize, right_padded
from tests.catalogue import models, seq2seq
from tests.catalogue.case import B, D, S, U
from tests.catalogue.cells import MinimalGatedCell
from tests.conftest import others_long

MODELS = {
    "RNNSeq2Seq": (
        lambda cell: seq2seq.model_of(cell=cell, encoder_layers=2, decoder_layers=2),
        seq2seq.translation_inputs,
    ),
    "RNNLanguageModel": (
        lambda cell: RNNLanguageModel(17, 7, 11, num_layers=2, cell=cell),
        models.LANGUAGE[0].inputs,
    ),
    "Forecaster": (
        lambda cell: Forecaster(3, 11, num_layers=2, cell=cell, decoder="recurrent"),
        models.FORECASTERS[0].inputs,
    ),
}
every_model = pytest.mark.parametrize("make, inputs", MODELS.values(), ids=MODELS)
PATTERNS = {
    "our GRUCell": ("gru", lambda: GRUCell(3)),
    "our LSTMCell": ("lstm", lambda: LSTMCell(3)),
    "Keras's GRUCell": ("gru", lambda: keras.layers.GRUCell(3)),
    "Keras's SimpleRNNCell": ("simple_rnn", lambda: keras.layers.SimpleRNNCell(3)),
}


@every_model
@pytest.mark.parametrize("name, pattern", others_long(PATTERNS.values()), ids=PATTERNS)
def test_a_pattern_is_the_cell_of_that_name(name, pattern, make, inputs):
    named, other = make(name), make(pattern())
    expected = named(inputs())
    other(inputs())
    assert not [each for each in other.weights if 3 in each.shape]  # the pattern has made none
    other.set_weights(randomize(named).get_weights())
    assert np.abs(numbers(named(inputs())) - numbers(expected)).max() > 0.01
    close(other(inputs()), named(inputs()), atol=1e-5)


class Doubled(MinimalGatedCell):
    """Its output is not its state."""

    def call(self, inputs, states):
        h, _ = super().call(inputs, states)
        return 2 * h, h


class Wider(MinimalGatedCell):
    """A second state that is wider than the units."""

    def __init__(self, units, **kwargs):
        super().__init__(units, **kwargs)
        self.state_size = [units, units + 1]


class Wordless(MinimalGatedCell):
    """It does not say its units."""

    def get_config(self):
        config = super().get_config()
        del config["units"]
        return config


REFUSED = {
    "another name": lambda: "mgu",
    "a number": lambda: 3,
    "a class": lambda: GRUCell,
    "a layer": lambda: keras.layers.GRU(3),
    "a stack": lambda: StackedCells([GRUCell(3)]),
    "dropout": lambda: LSTMCell(3, dropout=0.1),
    "Keras's, dropout": lambda: keras.layers.GRUCell(3, recurrent_dropout=0.1),
    "an output that is no state": lambda: Doubled(3),
    "a state of another width": lambda: Wider(3),
    "no units": lambda: Wordless(3),
    "a QRNN with dropout": lambda: QRNN(3, dropout=0.1),
    "a QRNN backwards": lambda: QRNN(3, go_backwards=True),
}


@pytest.mark.parametrize("make", others_long([make for make, _ in MODELS.values()]), ids=MODELS)
@pytest.mark.parametrize("cell", REFUSED.values(), ids=REFUSED)
def test_a_cell_that_does_not_fit_is_refused(cell, make):
    message = (
        r"^\w+: cell must be one of \['gru', 'lstm', 'qrnn', 'simple_rnn'\], a QRNN, or a cell "
        r"such as keras\.layers\.LSTMCell\(1\), with `units` in its config, all its states of "
        r"that width, the first of them its output; none with dropout of its own, stateful or "
        r"backwards; received .*\.$"
    )
    with pytest.raises(ValueError, match=message):
        make(cell())


def test_the_states_of_a_pattern_have_names():
    model = RNNLanguageModel(17, 7, 11, num_layers=2, cell=keras.layers.LSTMCell(3))
    names = ["hidden_0", "state_1_0", "hidden_1", "state_1_1"]
    assert [entry.name for entry in model.state_entries] == names


@pytest.mark.parametrize("cell", ["lstm", MinimalGatedCell], ids=["lstm", "a cell of the user's"])
def test_a_stack_of_both_directions_goes_on_from_the_states_of_each_layer(cell):
    cell = cell if isinstance(cell, str) else cell(3)
    stack = RecurrentStack(cell, U, 3, bidirectional=True)
    sequences, mask = floats(B, S, D), right_padded([5, 3], S)
    stack(sequences, mask=mask)
    _, states = randomize(stack)(sequences, mask=mask)
    outputs, final = stack(sequences, mask=mask, initial_state=[2 * each for each in states])
    x, expected, size = sequences, [], len(states) // 3
    for layer, level in zip(stack.recurrent_layers, (0, size, 2 * size), strict=True):
        start = [2 * each for each in states[level : level + size]]
        x, *own = layer(x, mask=mask, initial_state=start)
        expected += own
    close([outputs, *final], [x, *expected])


def test_a_stack_drops_the_inputs_of_every_layer():
    stack = RecurrentStack("gru", U, 2, dropout=0.5, bidirectional=True)
    sequences = floats(B, S, D)
    whole, _ = stack(sequences)
    dropped, _ = stack(sequences, training=True)
    assert np.abs(numbers(whole) - numbers(dropped)).max() > 0.01
    lowest = stack.recurrent_layers[0]
    lowest.set_weights([0 * each for each in lowest.get_weights()])
    close(stack(sequences, training=True)[0], stack(sequences)[0])  # zeros are all there is

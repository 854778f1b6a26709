import numpy as np
import pytest

from seqkeras.embeddings import CharacterCNN
from tests.agreement import DTYPES
from tests.arrays import close
from tests.catalogue import embeddings
from tests.complex_step import assert_equals_loops
from tests.references.embeddings import character_cnn
from tests.refusals import refusals

every_activation = pytest.mark.parametrize("case", embeddings.CASES[:2], ids=lambda case: case.name)


def expected(layer, weights, inputs):
    table, *weights = weights
    pairs = list(zip(weights[::2], weights[1::2], strict=True))
    return character_cnn(inputs["character_ids"], table, pairs, layer.activation)


@every_activation
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_vector_of_a_word_and_its_gradients_are_the_papers_formula(case, dtype):
    assert_equals_loops(case.build, dtype, case.inputs(), lambda layer: layer.weights, expected)


@every_activation
def test_the_vector_of_a_word_does_not_depend_on_its_padding(case):
    layer, ids = case.build(), case.inputs()["character_ids"]
    close(layer(np.pad(ids, [(0, 0), (0, 0), (0, 4)])), layer(ids))


def test_a_filter_may_be_wider_than_the_longest_word():
    layer = CharacterCNN(13, 5, [7], [11])
    ids = np.array([[[3, 4], [5, 0], [6, 7]]])
    actual = layer(ids)
    close(actual, expected(layer, layer.get_weights(), {"character_ids": ids}))


def make(vocab_size=13, widths=(2, 3), filters=(3, 7), **options):
    return lambda: CharacterCNN(vocab_size, 5, [*widths], [*filters], **options)


test_arguments_that_do_not_fit_are_refused = refusals(
    (make(widths=[2]), "CharacterCNN: widths and filters must be lists of one length; received [2"),
    (make(widths=[], filters=[]), "widths and filters must ...; received [] and []."),
    (make(filters=[3, 0]), "CharacterCNN: filters must be a positive integer; received 0."),
    (make(widths=[2, 1.5]), "CharacterCNN: widths must be a positive integer; received 1.5."),
    (make(activation="gelu"), "activation must be one of ('relu', 'tanh'); received 'gelu'"),
    (lambda: make()().build((2, 5)), "character_ids must have shape (batch, length, characters); "),
)

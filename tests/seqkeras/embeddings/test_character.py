import numpy as np
import pytest

from seqkeras.embeddings import CharacterCNN
from tests.agreement import DTYPES
from tests.arrays import close, numbers
from tests.catalogue import embeddings
from tests.complex_step import assert_equals_loops
from tests.references.embeddings import character_cnn

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


@every_activation
def test_a_word_without_characters_is_zero(case):
    layer, ids = case.build(), case.inputs()["character_ids"]
    assert not ids[0, 1].any()
    vectors = numbers(layer(ids))
    assert np.all(vectors[0, 1] == 0) and vectors[0, 0].any()


def test_a_filter_may_be_wider_than_the_longest_word():
    layer = CharacterCNN(13, 5, [7], [11])
    ids = np.array([[[3, 4], [5, 0], [6, 7]]])
    actual = layer(ids)
    close(actual, expected(layer, layer.get_weights(), {"character_ids": ids}))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"widths": [2]}, r"widths and filters must be lists of one length; received \[2\] and \["),
        ({"widths": [], "filters": []}, r"widths and filters must .*; received \[\] and \[\]\.$"),
        ({"filters": [3, 0]}, r"every size must be at least 1; received .*filters=\[3, 0\]\.$"),
        ({"vocab_size": 0}, r"every size must be at least 1; received vocab_size=0, "),
        ({"activation": "gelu"}, r"activation must be one of \('relu', 'tanh'\); received 'gelu'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change, message):
    arguments = {"vocab_size": 13, "embedding_dim": 5, "widths": [2, 3], "filters": [3, 7]}
    with pytest.raises(ValueError, match=f"^CharacterCNN: {message}"):
        CharacterCNN(**arguments | change)


def test_words_without_an_axis_of_characters_are_refused():
    message = r"^CharacterCNN: character_ids must have shape \(batch, length, characters\); .*5\)"
    with pytest.raises(ValueError, match=message):
        CharacterCNN(13, 5, [2], [3]).build((2, 5))

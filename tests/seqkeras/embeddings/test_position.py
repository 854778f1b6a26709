import numpy as np
import pytest

from seqkeras.embeddings import LearnedPositions, SinusoidalPositions
from tests.arrays import close, randomize
from tests.references.transformer import sinusoids

FORMS = ["paper", "tensor2tensor", "marian"]
every_form = pytest.mark.parametrize("form", FORMS)


@every_form
@pytest.mark.parametrize("dim", [2, 3, 7, 8])
def test_sinusoids_are_their_papers_formula(form, dim):
    positions = np.array([[0, 1, 2], [17, 511, 8191]])
    actual = SinusoidalPositions(dim, form)(positions)
    assert actual.shape == (2, 3, dim)
    close(actual, sinusoids(positions, dim, form), rtol=0, atol=1e-6)


def test_the_forms_are_three():
    vectors = [np.asarray(SinusoidalPositions(6, form)(np.array([3]))) for form in FORMS]
    assert all(not np.allclose(vectors[i], vectors[i - 1]) for i in range(3))


def test_the_orders_are_the_papers_and_tensor2tensors():
    """Worked by hand: D = 4, position 1."""
    slow = 1e-2
    close(
        SinusoidalPositions(4, "paper")(np.array([1]))[0],
        np.array([np.sin(1), np.cos(1), np.sin(slow), np.cos(slow)]),
    )
    slow = 1e-4
    close(
        SinusoidalPositions(4, "tensor2tensor")(np.array([1]))[0],
        np.array([np.sin(1), np.sin(slow), np.cos(1), np.cos(slow)]),
    )


def test_learned_positions_are_rows_of_a_table():
    layer, positions = LearnedPositions(11, 7), np.array([[0, 3, 10], [4, 4, 1]])
    layer(positions)
    randomize(layer)
    close(layer(positions), layer.get_weights()[0][positions])


def test_a_sequence_beyond_the_learned_positions_is_refused():
    message = r"LearnedPositions: a sequence must have at most max_length, 3, positions; received 4"
    with pytest.raises(ValueError, match=message):
        LearnedPositions(3, 7)(np.arange(4)[None])


@pytest.mark.parametrize("position", [-1, 3])
def test_a_position_out_of_the_table_is_refused(position):
    message = rf"LearnedPositions: positions must be from 0 to 2, as max_.* received {position}\."
    with pytest.raises(ValueError, match=message):
        LearnedPositions(3, 7)(np.array([[1, position]]))


def test_sizes_and_forms_out_of_range_are_refused():
    with pytest.raises(
        ValueError, match=r"^SinusoidalPositions: dim must be at least 2; rec.* 1\."
    ):
        SinusoidalPositions(1)
    message = r"^SinusoidalPositions: form must be one of \('paper', .*\); received 'cosine'\.$"
    with pytest.raises(ValueError, match=message):
        SinusoidalPositions(8, "cosine")
    message = r"^LearnedPositions: max_length must be a positive integer; received 0\.$"
    with pytest.raises(ValueError, match=message):
        LearnedPositions(0, 7)
    message = r"^LearnedPositions: first_position must be at least 0; received -1\.$"
    with pytest.raises(ValueError, match=message):
        LearnedPositions(3, 7, first_position=-1)


def test_positions_may_begin_behind_other_rows():
    layer, positions = LearnedPositions(11, 7, first_position=2), np.array([[0, 3, 10]])
    layer(positions)
    randomize(layer)
    assert layer.get_weights()[0].shape == (13, 7)
    close(layer(positions), layer.get_weights()[0][positions + 2])
    message = r"positions must be from 0 to 10, as max_length is 11; received 11\."
    with pytest.raises(ValueError, match=message):
        layer(np.array([[11]]))

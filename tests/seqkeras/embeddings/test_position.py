import numpy as np
import pytest

from seqkeras.embeddings import LearnedPositions, SinusoidalPositions
from tests.arrays import close, randomize
from tests.references.transformer import sinusoids
from tests.refusals import refusals

FORMS = ["paper", "tensor2tensor", "marian"]
every_form = pytest.mark.parametrize("form", FORMS)


@every_form
@pytest.mark.parametrize("dim", [2, 3, 7, 8])
def test_sinusoids_are_their_papers_formula(form, dim):
    positions = np.array([[0, 1, 2], [17, 511, 8191]])
    actual = SinusoidalPositions(dim, form)(positions)
    assert actual.shape == (2, 3, dim)
    close(actual, sinusoids(positions, dim, form), rtol=0, atol=1e-6)


def test_learned_positions_are_rows_of_a_table_and_may_begin_behind_others():
    layer, positions = LearnedPositions(11, 7, first_position=2), np.array([[0, 3, 10]])
    layer(positions)
    randomize(layer)
    assert layer.get_weights()[0].shape == (13, 7)
    close(layer(positions), layer.get_weights()[0][positions + 2])


def learned(*positions, **options):
    return lambda: LearnedPositions(3, 7, **options)(np.array([positions]))


test_positions_out_of_range_are_refused = refusals(
    (learned(0, 1, 2, 3), "a sequence must have at most max_length, 3, positions; received 4"),
    (learned(1, -1), "LearnedPositions: positions must be from 0 to 2, as max_... received -1."),
    (learned(1, 3, first_position=2), "positions must be from 0 to 2, as max_length is 3; receive"),
    (lambda: SinusoidalPositions(1), "SinusoidalPositions: dim must be at least 2; rec... 1."),
    (lambda: SinusoidalPositions(8, "cosine"), "form must be one of ('paper', ...); received 'cos"),
)

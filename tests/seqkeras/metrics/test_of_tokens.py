"""Metrics of real tokens, against loops in float64 and Keras's own."""

import keras
import numpy as np
import pytest

from seqkeras.metrics import Perplexity, SequenceAccuracy, TokenAccuracy
from tests.arrays import close, floats

LABELS = np.array([[3, 1, 6, 0, 0], [2, 0, 0, 0, 0], [4, 5, 1, 2, 3]])
REAL = LABELS != 0
WEIGHTS = np.array([1.0, 0.0, 2.0], "float32")
METRICS = (TokenAccuracy, SequenceAccuracy, Perplexity)


def logits():
    """Right at seven tokens, in the last row at all."""
    found = floats(*LABELS.shape, 7)
    for row, t in [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2), (2, 3), (2, 4)]:
        found[row, t, LABELS[row, t]] = 5.0
    found[0, 2, 6] = found[1, 0, 2] = -5.0
    return found


def cross_entropies(given):
    """Of the real tokens, one by one."""
    found = []
    for row, t in zip(*np.nonzero(REAL)):
        exps = np.exp(given[row, t].astype("float64"))
        found.append(-np.log(exps[LABELS[row, t]] / exps.sum()))
    return found


def test_accuracy_is_kerass_over_real_tokens():
    given = logits()
    close(TokenAccuracy()(LABELS, given), 7 / 9)
    weights = np.broadcast_to(WEIGHTS[:, None], LABELS.shape)
    theirs = keras.metrics.SparseCategoricalAccuracy()(LABELS, given, REAL * weights)
    close(TokenAccuracy()(LABELS, given, WEIGHTS), theirs)
    close(TokenAccuracy()(LABELS, given, weights), theirs)
    theirs = keras.metrics.SparseCategoricalAccuracy()(LABELS, given)
    close(TokenAccuracy(ignore_class=None)(LABELS, given), theirs)


def test_perplexity_is_the_exponential_of_the_mean_cross_entropy():
    given = logits()
    expected = np.exp(np.mean(cross_entropies(given)))
    close(Perplexity()(LABELS, given), expected)
    negative = np.where(REAL, LABELS, -1)
    close(Perplexity(ignore_class=-1)(negative, given), expected)


def test_a_sequence_is_right_where_all_its_tokens_are():
    close(SequenceAccuracy()(LABELS, logits()), 1 / 3)
    nothing = np.concatenate([LABELS, np.zeros((1, 5), int)])
    close(SequenceAccuracy()(nothing, np.concatenate([logits(), floats(1, 5, 7)])), 1 / 3)
    without_a_slip = np.ones_like(LABELS)
    without_a_slip[0, 2] = 0
    close(SequenceAccuracy()(LABELS, logits(), without_a_slip), 2 / 3)


@pytest.mark.parametrize("make", METRICS)
def test_batches_add_up_and_padding_counts_nothing(make):
    whole, parts = make(), make()
    whole.update_state(LABELS, logits())
    for row in range(3):
        length = REAL[row].sum() + 1
        parts.update_state(LABELS[row : row + 1, :length], logits()[row : row + 1, :length])
    close(parts.result(), whole.result())
    again = make.from_config(make(ignore_class=-3, name="own").get_config())
    assert (again.ignore_class, again.name) == (-3, "own")


@pytest.mark.parametrize("make", METRICS)
def test_labels_of_another_rank_are_refused(make):
    message = rf"^{make.__name__}: y_pred must have an axis of classes after the axes of y_true; re"
    with pytest.raises(ValueError, match=message):
        make()(np.eye(7)[LABELS], logits())

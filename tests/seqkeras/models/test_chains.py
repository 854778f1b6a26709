"""Chains of tags: every sequence of tags is enumerated, in float64."""

import itertools

import numpy as np
import pytest
from keras import ops

from seqkeras.losses import ChainLoss
from seqkeras.models import ChainTaggingHead
from seqkeras.serving.pipelines.chains import marginals, most_probable
from tests.arrays import close, floats, numbers
from tests.autodiff import gradients_of

K = 3


def energies(potentials):
    """Tags -> the sum of the potentials (T, K + 1, K) along them, for all sequences of tags."""
    found = {}
    for tags in itertools.product(range(K), repeat=len(potentials)):
        before = (K, *tags)
        steps = zip(potentials.astype("float64"), before, tags)
        found[tags] = sum(own[last, tag] for own, last, tag in steps)
    return found


def probabilities(potentials):
    exps = {tags: np.exp(energy) for tags, energy in energies(potentials).items()}
    return {tags: value / sum(exps.values()) for tags, value in exps.items()}


def loss_of(potentials, tags):
    """Minus the log-probability of the tags of one sequence; those below 0 are left out."""
    kept = [place for place, tag in enumerate(tags) if tag >= 0]
    own = tuple(tags[place] for place in kept)
    return -np.log(probabilities(potentials[kept])[own])


def test_the_loss_is_minus_the_log_probability_of_the_tags():
    potentials = 2 * floats(3, 5, K + 1, K)
    targets = np.array([[0, 2, 1, 1, 0], [-1, 1, -1, 2, -1], [-1, -1, -1, 0, -1]])
    expected = [loss_of(*row) for row in zip(potentials, targets)]
    losses = ChainLoss(reduction=None)(targets, potentials)
    close(ops.sum(losses, axis=1), np.array(expected))
    assert np.all(numbers(losses)[targets < 0] == 0)
    close(ChainLoss()(targets, potentials), sum(expected) / np.sum(targets >= 0))


def test_what_has_no_tag_gets_no_gradient_and_the_others_that_of_their_marginals():
    potentials, targets = floats(1, 4, K + 1, K), np.array([[1, -1, 0, 2]])
    loss = ChainLoss(reduction="sum")
    [found] = gradients_of(lambda values: loss(targets, values[0]), [potentials])
    kept = [0, 2, 3]
    expected = np.zeros((4, K + 1, K))
    for tags, probability in probabilities(potentials[0, kept]).items():
        for place, last, tag in zip(kept, (K, *tags), tags):
            expected[place, last, tag] += probability
    for place, last, tag in zip(kept, (K, 1, 0), (1, 0, 2)):
        expected[place, last, tag] -= 1
    close(found[0], expected)


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"must have shape \(B, T, K \+ 1, K\); received \(2, 5"):
        ChainLoss()(np.zeros((2, 5)), floats(2, 5, 3))


@pytest.mark.parametrize("length", [1, 2, 6])
def test_the_best_tags_and_the_marginals_are_those_of_all_sequences(length):
    potentials = 2 * floats(length, K + 1, K, seed=length)
    by_tags = probabilities(potentials)
    assert tuple(most_probable(potentials)) == max(by_tags, key=by_tags.get)
    expected = np.zeros((length, K))
    for tags, probability in by_tags.items():
        expected[range(length), tags] += probability
    np.testing.assert_allclose(marginals(potentials), expected, rtol=1e-9)


def test_no_words_have_no_tags():
    nothing = np.zeros((0, K + 1, K))
    assert most_probable(nothing).shape == (0,) and marginals(nothing).shape == (0, K)


def test_the_head_is_a_linear_map_and_a_chain():
    head = ChainTaggingHead(K, dropout=0.3)
    hidden = floats(2, 4, 5)
    found = numbers(head(hidden))
    kernel, bias = map(numbers, head.output_layer.weights)
    logits = hidden @ kernel + bias
    close(found, logits[:, :, None] + numbers(head.chain.transitions))
    assert head.chain.compute_output_shape((2, None, K)) == (2, None, K + 1, K)
    assert not np.allclose(found, numbers(head(hidden, training=True)))

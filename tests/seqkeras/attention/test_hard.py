import itertools

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras import attention
from tests import references
from tests.agreement import DOUBLE, difference, in_double
from tests.arrays import close, floats, gradients, numbers, randomize, right_padded
from tests.autodiff import gradients_of
from tests.catalogue.attention import attention_inputs

MASK = np.array([[[True, True, True, False], [True, False, True, True]]])


def general(inputs):
    layer = attention.HardAttention(attention.GeneralScore(), seed=3)
    layer(**inputs)
    return randomize(layer)


def log_probabilities(layer, query, key, attention_mask):
    """(B, T, S) from the reference; -inf where masked, and everywhere in a fully masked row."""
    scores = references.general_score(query, key, *layer.score.get_weights())
    _, soft = references.attention(scores, np.zeros((*key.shape[:2], 1)), attention_mask)
    with np.errstate(divide="ignore"):
        return np.log(soft)


def test_hard_attention_takes_the_best_position_at_inference():
    inputs = attention_inputs()
    inputs["attention_mask"][1, 2] = False
    layer = general(inputs)
    scores = references.general_score(inputs["query"], inputs["key"], *layer.score.get_weights())
    for mask in (inputs["attention_mask"], None):
        expected = references.hard_attention(scores, inputs["value"], mask)
        close(layer(**inputs | {"attention_mask": mask}), expected)


def test_samples_come_as_often_as_the_softmax_says():
    query, key = floats(1, 2, 7), floats(1, 4, 7)
    layer = attention.HardAttention(attention.DotScore(), seed=3)
    count = 5000
    inputs = [np.repeat(each, count, axis=0) for each in (0.5 * query, key, key)]
    context, weights = numbers(layer(*inputs, attention_mask=MASK, training=True))
    assert np.all(weights.sum(axis=-1) == 1) and set(np.unique(weights)) == {0, 1}
    close(context, weights @ inputs[2])
    scores = references.dot_score(0.5 * query, key)
    _, soft = references.attention(scores, key, MASK)
    spread = np.sqrt(soft * (1 - soft) / count)
    assert np.all(np.abs(weights.mean(axis=0) - soft[0]) <= 5 * spread[0])


def test_samples_follow_the_seed_and_differ_from_call_to_call():
    inputs = [np.repeat(0.1 * floats(1, 2, 7), 100, axis=0)] * 3

    def calls(seed):
        layer = attention.HardAttention(attention.DotScore(), seed=seed)
        return [numbers(layer(*inputs, training=True)[1]) for _ in range(2)]

    first, second = calls(3)
    assert np.any(first != second)
    np.testing.assert_array_equal([first, second], calls(3))
    assert np.any(first != calls(5)[0])


def test_a_fully_masked_row_gives_zeros_in_training_too():
    inputs = attention_inputs()
    layer = general(inputs)
    inputs["attention_mask"][1] = False
    context, weights = numbers(layer(**inputs, training=True))
    assert np.all(context[1] == 0) and np.all(weights[1] == 0)
    assert np.all(weights[0].sum(axis=-1) == 1)
    del inputs["value"]
    assert np.all(numbers(layer.log_probability(**inputs, weights=weights))[1] == 0)
    assert np.all(numbers(layer.entropy(**inputs))[1] == 0)


def test_log_probability_and_entropy_are_those_of_the_softmax():
    inputs = attention_inputs()
    layer = general(inputs)
    _, weights = numbers(layer(**inputs, training=True))
    del inputs["value"]
    logs = log_probabilities(layer, **inputs)
    expected = np.where(weights == 1, logs, 0).sum(axis=-1)
    close(layer.log_probability(**inputs, weights=weights), expected)
    entropy = -np.sum(np.exp(logs) * np.where(np.isfinite(logs), logs, 0), axis=-1)
    close(layer.entropy(**inputs), entropy)
    for gradient in gradients(layer, lambda each: ops.sum(each.entropy(**inputs))):
        assert np.all(np.isfinite(gradient)) and np.any(gradient != 0)


def choices(num_queries, num_keys):
    """Every way to choose a position for each query, as one-hot weights (1, T, S)."""
    for positions in itertools.product(range(num_keys), repeat=num_queries):
        yield np.eye(num_keys)[list(positions)][None]


@pytest.mark.parametrize("baseline", [0.0, 3.7, -11.0])
def test_reinforce_expects_the_gradient_of_the_expected_loss(baseline):
    """Two queries of four keys: the sixteen choices, each as likely as the model says."""
    with in_double():
        dtype = keras.config.floatx()
        query, key, value = (
            floats(1, size, 7, seed=place).astype(dtype) for place, size in enumerate((2, 4, 4))
        )
        layer = general({"query": query, "key": key, "value": value, "attention_mask": MASK})
        logs = log_probabilities(layer, query, key, MASK)
        kernel = layer.score.kernel.numpy() if DOUBLE else numbers(layer.score.kernel.value)

        def loss_of(weights, value):
            context = ops.matmul(ops.convert_to_tensor(weights.astype(dtype)), value)
            return ops.sum(context**2, axis=(1, 2))  # (1,)

        def exact(values):
            kernel, value = values
            projected = ops.matmul(query, kernel)
            scores = ops.matmul(projected, ops.transpose(key, (0, 2, 1)))
            soft = ops.softmax(ops.where(MASK, scores, -1e9), axis=-1)
            total = 0.0
            for weights in choices(2, 4):
                probability = ops.prod(ops.sum(ops.multiply(soft, weights.astype(dtype)), axis=-1))
                total = total + probability * ops.sum(loss_of(weights, value))
            return total

        expected = gradients_of(exact, [kernel, value])

        def estimated(weights):
            def surrogate(layer, value=value):
                log_probability = layer.log_probability(query, key, weights.astype(dtype), MASK)
                losses = loss_of(weights, value)
                return attention.reinforce_loss(losses, ops.sum(log_probability, axis=1), baseline)

            by_value = gradients_of(lambda values: surrogate(layer, values[0]), [value])
            return [*gradients(layer, surrogate), *by_value]

        actual = [np.zeros_like(each) for each in expected]
        for weights in choices(2, 4):
            probability = np.exp(np.where(weights == 1, logs, 0).sum())
            if probability > 0:
                actual = [
                    total + probability * each
                    for total, each in zip(actual, estimated(weights), strict=True)
                ]
    assert difference(actual, expected) < (1e-9 if DOUBLE else 1e-5)


def test_what_is_differentiated_is_the_loss_its_advantage_and_less_entropy():
    losses, logs, entropies = (floats(5, seed=seed) for seed in range(3))
    expected = np.mean(losses + (losses - 0.7) * logs - entropies)
    close(attention.reinforce_loss(losses, logs, 0.7, entropies), expected)


def test_a_baseline_is_the_moving_average_of_the_losses_before():
    layer, expected = attention.MovingAverageBaseline(momentum=0.7), 0.0
    for seed in range(4):
        losses = floats(5, seed=seed)
        close(layer(losses), np.full(5, expected))
        close(layer(losses, training=True), np.full(5, expected))
        expected = 0.7 * expected + 0.3 * losses.mean()
    close(layer.average.value, expected)


def test_padding_may_hold_no_numbers_where_choices_are_judged():
    inputs = attention_inputs()
    layer, query, key = general(inputs), inputs["query"], inputs["key"]
    mask = right_padded([5, 3], 5)[:, None]
    _, weights = layer(query, key, inputs["value"], mask)
    padded = np.where(mask[:, 0, :, None], key, np.nan)

    def judged(key):
        log_probability = layer.log_probability(query, key, weights, mask)
        return log_probability + layer.entropy(query, key, mask)

    close(judged(padded), judged(key))
    close(
        gradients(layer, lambda _: ops.sum(judged(padded))),
        gradients(layer, lambda _: ops.sum(judged(key))),
    )

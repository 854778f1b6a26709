import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.losses import (
    DistanceLoss,
    ForecastLoss,
    HiddenStateLoss,
    PinballLoss,
    SmoothedCrossEntropy,
    SoftTargetLoss,
    span_loss,
)
from seqkeras.values import BANNED_LOGIT
from tests.arrays import close, floats, numbers
from tests.autodiff import gradients_of
from tests.references.forecaster import pinball
from tests.refusals import refusals


def negative_log_probability(logits, place):
    logits = logits.astype("float64")
    return np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[place]


def test_the_loss_of_a_span_is_minus_the_log_probability_of_its_ends():
    logits = floats(3, 11)
    logits[1, 7:] = -1e9
    positions = np.array([10, 3, 0])
    expected = [negative_log_probability(row, place) for row, place in zip(logits, positions)]
    close(span_loss(positions, logits), np.array(expected))


def test_an_answer_that_is_not_there_costs_nothing():
    logits = floats(2, 5)
    losses = numbers(span_loss(np.array([-1, 3]), logits))
    assert losses[0] == 0 and losses[1] > 0
    [gradient] = gradients_of(lambda values: ops.sum(span_loss([-1, 3], values[0])), [logits])
    assert np.all(gradient[0] == 0) and np.all(gradient[1] != 0)


def test_a_span_loss_in_half_precision_is_computed_in_float32():
    logits = floats(2, 5).astype("float16")
    close(span_loss([1, 3], logits), span_loss([1, 3], logits.astype("float32")))


def test_pinball_loss_is_the_papers_formula():
    quantiles = [0.1, 0.5, 0.7]
    targets, predictions = floats(2, 5, 3), floats(2, 5, 3, 3, seed=1)
    close(PinballLoss(quantiles)(targets, predictions), pinball(targets, predictions, quantiles))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_smoothed_cross_entropy_is_the_papers_formula(smoothing):
    logits, targets = floats(2, 5, 7), np.array([[3, 1, 6, 0, 0], [2, 0, 0, 0, 0]])
    expected = []
    for row, t in zip(*np.nonzero(targets)):
        q = np.full(7, smoothing / 7)
        q[targets[row, t]] += 1 - smoothing
        costs = [negative_log_probability(logits[row, t], place) for place in range(7)]
        expected.append(q @ np.array(costs))
    close(SmoothedCrossEntropy(smoothing, ignore_class=0)(targets, logits), np.mean(expected))


def test_smoothing_is_over_the_classes_that_may_be_chosen_as_the_logits_say():
    """The loss over those classes alone."""
    targets = np.array([[3, 4, 6, 0, 0], [5, 0, 0, 0, 0]])
    logits = floats(2, 5, 7)
    logits[..., :3] = BANNED_LOGIT
    loss = SmoothedCrossEntropy(0.2, ignore_class=0)
    allowed = SmoothedCrossEntropy(0.2, ignore_class=-3)(targets - 3, numbers(logits)[..., 3:])
    close(loss(targets, logits), allowed)
    [gradient] = gradients_of(lambda values: loss(targets, values[0]), [numbers(logits)])
    assert np.all(np.isfinite(gradient))
    assert np.all(gradient[..., :3] == 0)


def test_smoothed_cross_entropy_is_kerass_where_keras_has_it():
    logits, targets = floats(3, 5, 7), np.random.default_rng(0).integers(0, 7, (3, 5))
    rival = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2)
    close(SmoothedCrossEntropy(0.2)(targets, logits), rival(np.eye(7)[targets], logits))
    weights = np.array([[1.0, 0, 2, 0, 1]] * 3, "float32")
    per_token = SmoothedCrossEntropy(0.2, reduction="none")(targets, logits)
    expected = np.sum(numbers(per_token) * weights) / np.sum(weights)
    close(SmoothedCrossEntropy(0.2)(targets, logits, weights), expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_large_and_infinite_logits_lose_nothing(smoothing):
    logits, targets = 1000 * floats(3, 7), np.array([2, 0, 6])
    expected = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=smoothing)
    loss = SmoothedCrossEntropy(smoothing)
    close(loss(targets, logits), expected(np.eye(7)[targets], logits))
    banned = np.concatenate([logits, np.full((3, 2), -np.inf, "float32")], axis=1)
    close(loss(targets, banned), loss(targets, logits))
    [gradient] = gradients_of(lambda values: loss(targets, values[0]), [banned])
    assert np.all(np.isfinite(gradient))


def test_a_target_beyond_the_classes_is_not_a_number_unless_it_is_ignored():
    logits, targets = floats(3, 7), np.array([2, 7, 6])
    assert np.isnan(numbers(SmoothedCrossEntropy(0.2)(targets, logits)))
    ignoring = SmoothedCrossEntropy(0.2, ignore_class=7)(targets, logits)
    close(ignoring, SmoothedCrossEntropy(0.2)(targets[[0, 2]], logits[[0, 2]]))


def test_soft_targets_are_the_papers_formula():
    teacher, student = floats(3, 7), floats(3, 7, seed=1)

    def softmax(logits):
        exponentials = np.exp(logits.astype("float64") / 3.0)
        return exponentials / exponentials.sum(axis=-1, keepdims=True)

    expected = -9 * np.sum(softmax(teacher) * np.log(softmax(student)), axis=-1)
    close(SoftTargetLoss(3.0)(teacher, student), expected.mean())


def test_soft_targets_leave_padding_out():
    teacher, student = floats(3, 5, 7), floats(3, 5, 7, seed=1)
    mask = np.array([[1, 1, 0, 0, 0]] * 3, "float32")
    loss = SoftTargetLoss(3.0)
    close(loss(teacher, student, mask), loss(teacher[:, :2], student[:, :2]))


def test_the_teacher_of_soft_targets_has_no_gradient():
    given = [floats(3, 7), floats(3, 7, seed=1)]
    [gradient] = gradients_of(
        lambda values: SoftTargetLoss(2.0)(values[0], ops.add(values[0], given[1])), given[:1]
    )
    p, q = (numbers(ops.softmax(each / 2)) for each in (given[0], given[0] + given[1]))
    close(gradient, 2 * (q - p) / 3)


def test_distances_that_count_have_their_mean():
    distances, target = floats(3, 5), np.zeros((3, 5))
    target[1:, 2:] = -1
    weights = np.arange(15.0).reshape(3, 5)
    close(DistanceLoss()(target, distances), distances.mean())
    close(DistanceLoss(-1)(target, distances), distances[target == 0].mean())
    counted = weights * (target == 0)
    expected = (counted * distances).sum() / counted.sum()
    close(DistanceLoss(-1)(target, distances, weights), expected)


def test_hidden_states_are_matched_by_distance_or_direction():
    teacher, student = floats(3, 5, 7), floats(3, 5, 7, seed=1)
    close(HiddenStateLoss()(teacher, student), np.mean((teacher - student) ** 2))
    cosines = np.sum(teacher * student, -1) / (
        np.linalg.norm(teacher, axis=-1) * np.linalg.norm(student, axis=-1)
    )
    close(HiddenStateLoss("cosine")(teacher, student), np.mean(1 - cosines))
    mask = np.array([[1, 1, 0, 0, 0]] * 3, "float32")
    close(HiddenStateLoss()(teacher, student, mask), np.mean((teacher - student)[:, :2] ** 2))


@pytest.mark.parametrize(
    "loss",
    [
        SmoothedCrossEntropy(0.2, ignore_class=3),
        SoftTargetLoss(3.0),
        HiddenStateLoss("cosine"),
        DistanceLoss(-1),
        PinballLoss([0.1, 0.9], reduction="sum"),
    ],
    ids=lambda loss: loss.name,
)
def test_these_losses_are_made_again_from_their_config(loss):
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert type(again) is type(loss)
    assert again.get_config() == loss.get_config()


@pytest.mark.parametrize("kind", ForecastLoss.KINDS)
@pytest.mark.parametrize(
    "scale, growth",
    [([2.0, 0.5], [0.0, 0.0]), ([0.5, 3.0], [0.0, 0.7]), ([1.0, 2e-12], [0, 1e-12])],
)
def test_a_forecast_s_loss_knows_scales_and_logarithms_and_leaves_out_what_is_unknown(
    kind, scale, growth
):
    """A target with a growth is a logarithm; a tiny growth loses no digits."""
    quantiles = [0.2, 0.5, 0.9] if kind == "quantiles" else []
    targets = floats(3, 5, 2)
    targets[0, 1:4, 0] = targets[2, :, 1] = np.nan
    predictions = floats(3, 5, 2, *([3] if quantiles else []), seed=1)
    expected = []
    for place in np.argwhere(~np.isnan(targets)):
        size, grows = scale[place[-1]], growth[place[-1]]
        target, found = (np.float64(each[tuple(place)]) for each in (targets, predictions))
        error = target - found
        if grows:
            error = np.exp(grows * found) * np.expm1(grows * error)
        if quantiles:
            errors = zip(quantiles, error / size, strict=True)
            expected.append(np.mean([max(q * e, (q - 1) * e) for q, e in errors]))
        else:
            expected.append(abs(error / size) if kind == "mae" else (error / size) ** 2)
    loss = ForecastLoss(kind, scale, quantiles, growth=growth)
    close(loss(targets, predictions), np.mean(expected))
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    close(again(targets, predictions), np.mean(expected))
    [gradient] = gradients_of(lambda values: loss(targets, values[0]), [predictions])
    unknown = np.isnan(targets)
    assert np.isfinite(gradient).all() and not gradient[unknown].any()


test_losses_refuse_what_is_out_of_range = refusals(
    (lambda: SmoothedCrossEntropy(1.5), "label_smoothing must be from 0 to 1; received 1.5"),
    (lambda: SoftTargetLoss(0.0), "temperature must be positive; received 0.0"),
    (lambda: HiddenStateLoss("l1"), "distance must be 'mse' or 'cosine'; received 'l1'"),
    (
        lambda: HiddenStateLoss()(floats(3, 5), floats(3, 7)),
        "y_true and y_pred must have one width; received 5 and 7",
    ),
    *(
        (
            lambda wrong=wrong: PinballLoss(wrong),
            "PinballLoss: quantiles must lie between 0 and 1; r",
        )
        for wrong in ([], [0.0], [0.5, 1.0], [-0.1])
    ),
    (
        lambda: PinballLoss([0.1, 0.9])(floats(3), floats(3, 5)),
        "PinballLoss: y_pred must have 2 quantiles on its last axis; received (3, 5).",
    ),
    (lambda: ForecastLoss("mape", [1.0]), "ForecastLoss: kind must be mae, mse, quantiles; receiv"),
)

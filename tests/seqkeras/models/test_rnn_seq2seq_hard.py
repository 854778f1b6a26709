"""Hard attention in an encoder-decoder: one position a step, and REINFORCE inside `fit`."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.attention import HardAttention
from seqkeras.models import LuongDecoder
from seqkeras.models.rnn_reinforce import step_shares
from tests import references
from tests.agreement import DTYPES, TOLERANCES, difference
from tests.arrays import BACKEND, close, floats, gradients, numbers, randomize
from tests.catalogue.case import B
from tests.catalogue.seq2seq import SIZES, model_of, translation_inputs
from tests.complex_step import as_float64
from tests.conftest import others_long
from tests.seqkeras.models.support import needs_float64
from tests.seqkeras.models.test_rnn_seq2seq import options_of, weights_of

AFTER = {"decoder": LuongDecoder}
PLACES = {
    "before": {"decoder_layers": 2},
    "after": AFTER | {"cell": "lstm", "entropy_weight": 0.3},
    "after, fed": AFTER | {"input_feeding": True},
}
every_place = pytest.mark.parametrize("arguments", others_long(PLACES.values()), ids=PLACES)
CHOICES = 2  # real steps of both sources, and steps of both targets


def make(arguments, dtype="float32"):
    model = model_of(attention="hard", **arguments, dtype=dtype)
    model.build()
    randomize(model)
    loss = keras.losses.SparseCategoricalCrossentropy(True, ignore_class=0, dtype=dtype)
    model.compile("adam", loss, jit_compile=BACKEND == "jax")
    return model


def small_inputs():
    """Two sources of two tokens, and two targets, one of them of a single token."""
    inputs = {
        "token_ids": np.array([[5, 7, 0], [11, 3, 0]]),
        "lengths": np.array([CHOICES] * B),
        "target_ids": np.array([[2, 13], [2, 17]]),
    }
    return inputs, np.array([[13, 7], [17, 0]])


def drawn(model, inputs):
    """The reference's row by row: {positions: (logits (T, V), distributions (T, S))} for each."""

    def of(weights, row):
        options = options_of(model, "hard")
        source = inputs["token_ids"][row, : inputs["lengths"][row]]
        return {
            positions: references.seq2seq(
                source, inputs["target_ids"][row], weights, {**options, "positions": positions}
            )
            for positions in itertools.product(range(CHOICES), repeat=CHOICES)
        }

    return of


def cross_entropies(logits, targets):
    """(T,) -log p(y), zero at padding."""
    normalizers = np.log(np.sum(np.exp(logits), axis=-1))
    chosen = logits[np.arange(len(targets)), targets]
    return np.where(targets > 0, normalizers - chosen, 0)


def expected_loss(of, weights, targets, entropy_weight):
    """What training should make small: over all the ways to choose, each as often as it comes."""
    total, entropy, real = 0.0, 0.0, targets > 0
    for row in range(B):
        for positions, (logits, alphas) in of(weights, row).items():
            probability = np.prod([alphas[t][s] for t, s in enumerate(positions)])
            total += probability * np.sum(cross_entropies(logits, targets[row]))
        entropies = -np.sum(alphas * np.log(alphas), axis=-1)
        entropy += np.sum(entropies[real[row]])
    return total / np.sum(real) - entropy_weight * entropy / B


@pytest.mark.long
@needs_float64
@every_place
def test_reinforce_expects_the_gradient_of_the_expected_loss(arguments, monkeypatch):
    """All sixteen ways to choose: ours weighted by the reference's probabilities of them."""
    model, (inputs, targets) = make(arguments, "float64"), small_inputs()
    named, of = weights_of(model), drawn(model, inputs)
    rows = [of(as_float64(named), row) for row in range(B)]
    total = [0.0 for _ in model.trainable_weights]
    for choice in itertools.product(*rows):
        probability = np.prod(
            [
                rows[row][positions][1][t][s].real
                for row, positions in enumerate(choice)
                for t, s in enumerate(positions)
            ]
        )
        noise = 1e6 * (np.array(choice)[..., None] == np.arange(3))
        monkeypatch.setattr(HardAttention, "draw_noise", lambda self, shape, g=noise: g)
        model.baseline.average.assign(0.37)
        found = gradients(
            model, lambda model: model.compute_loss(inputs, targets, None, training=True)
        )
        total = [sum_ + probability * each for sum_, each in zip(total, found, strict=True)]
    pairs = []
    for weight, gradient in zip(model.trainable_weights, total, strict=True):
        direction = floats(*weight.shape, seed=7).astype("float64")
        moved = keras.tree.map_structure(
            lambda each: (
                numbers(each).astype("float64") + (1e-30j * direction if each is weight else 0)  # noqa: B023
            ),
            named,
        )
        entropy_weight = arguments.get("entropy_weight", 0)
        slope = expected_loss(of, moved, targets, entropy_weight).imag / 1e-30
        pairs.append((np.sum(gradient * direction), slope))
    actual, expected = np.transpose(pairs)
    assert np.all(expected != 0)
    assert np.max(np.abs(actual - expected)) <= 1e-9 * np.max(np.abs(expected))


@every_place
@pytest.mark.parametrize("dtype", DTYPES)
def test_at_inference_the_best_position_is_taken(arguments, dtype):
    model, inputs = make(arguments, dtype), translation_inputs()
    weights = as_float64(weights_of(model))
    options = options_of(model, "hard") | {"positions": None}
    expected = [
        references.seq2seq(source[:length], target, weights, options)[0].real
        for source, length, target in zip(*inputs.values(), strict=True)
    ]
    assert difference(numbers(model(inputs)), np.array(expected)) < TOLERANCES[dtype]


@every_place
def test_samples_come_as_often_as_their_probabilities_say(arguments):
    """Of many equal rows: the log-probabilities of what was drawn average to minus the entropy."""
    model, (inputs, _) = make(arguments), small_inputs()
    many = {name: np.repeat(each[:1], 2003, axis=0) for name, each in inputs.items()}
    state = model.encode(many["token_ids"], many["lengths"])
    logits, log_probabilities, entropies = numbers(
        model.decoder.sample(ops.convert_to_tensor(many["target_ids"]), state)
    )
    assert logits.shape == (2003, CHOICES, SIZES["target_vocab_size"])
    first = log_probabilities[:, 0]  # the first choice is of one distribution
    close(entropies[:, 0], np.full(2003, entropies[0, 0]), rtol=1e-4)
    close(np.sum(np.exp(np.unique(np.round(first, 4)))), 1, atol=1e-3)
    assert abs(np.mean(first) + entropies[0, 0]) < 4 * np.std(first) / np.sqrt(2003)


@pytest.mark.parametrize("arguments", [PLACES["before"], PLACES["after"]], ids=["before", "after"])
def test_training_samples_and_says_the_loss_of_what_it_drew(arguments):
    model, inputs = make(arguments), translation_inputs()
    targets = np.array([[5, 7, 11], [13, 3, 0]])
    first, second = (numbers(model(inputs, training=True)) for _ in range(2))
    assert np.abs(first - second).max() > 0.01
    close(model(inputs), model(inputs))
    expected = float(numbers(model.baseline.average.value))
    losses = numbers([model.compute_loss(inputs, targets, None, training=True) for _ in range(7)])
    assert np.std(losses) > 0
    for loss in losses:  # what it says is the mean over the rows of what the baseline takes in
        expected = 0.9 * expected + 0.1 * loss
    plain = model.compute_loss(inputs, targets, model(inputs), training=False)
    close(plain, model.loss(targets, model(inputs)))
    close(model.baseline.average.value, expected)  # which evaluation did not move


def test_the_mean_over_rows_is_the_mean_over_real_tokens():
    targets, logits = np.array([[5, 7, 11], [13, 0, 0]]), floats(2, 3, 19)
    real = ops.convert_to_tensor(targets > 0, "float32")
    loss = keras.losses.SparseCategoricalCrossentropy(True, ignore_class=0)
    losses = numbers(keras.losses.sparse_categorical_crossentropy(targets, logits, True))

    def mean(weight=None):
        return np.mean(np.sum(numbers(step_shares(real, weight)) * losses, axis=1))

    close(mean(), loss(targets, logits))
    weight = np.array([[1.0, 0.5, 0.0], [2.0, 1.0, 1.0]], "float32")
    close(mean(weight), loss(targets, logits, weight))
    by_row = np.array([0.5, 2.0], "float32")
    close(mean(by_row), loss(targets, logits, np.repeat(by_row[:, None], 3, axis=1)))

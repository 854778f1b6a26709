"""Optimizers held against dense gradients in NumPy, and the faults of Keras that they mend."""

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras import optimizers
from seqkeras.learning_rates import Noam
from tests.arrays import close, numbers
from tests.conftest import others_long

ON_TENSORFLOW = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="gradients of embeddings are dense here"
)
NAMES = ("SGD", "Adam", "AdamW", "Lion", "Adafactor")
TOKEN_IDS = np.array([[3, 3, 1, 3], [2, 1, 3, 3]])  # the tokens repeat, as in every text
GAINS = np.random.default_rng(0).normal(size=(7, 2, 4, 5)).astype("float32")


def embedding(optimizer, steps, dense=False):
    """The table of an embedding after some steps; `dense` multiplies one-hot rows by it."""
    table = keras.Variable(np.linspace(-1, 1, 35, dtype="float32").reshape(7, 5))
    optimizer.build([table])
    import tensorflow as tf

    for gain in GAINS[:steps]:
        with tf.GradientTape() as tape:
            rows = ops.one_hot(TOKEN_IDS, 7) @ table if dense else ops.take(table, TOKEN_IDS, 0)
            loss = ops.sum(ops.sin(rows) * gain)
        optimizer.apply(tape.gradient(loss, [table.value]), [table])
    return numbers(table)


@ON_TENSORFLOW
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("clipped", others_long([{"clipnorm": 0.5}, {"global_clipnorm": 0.5}, {}]))
def test_repeated_tokens_count_as_in_the_dense_gradient(name, clipped):
    ours = embedding(getattr(optimizers, name)(0.1, **clipped), 5)
    exact = embedding(getattr(keras.optimizers, name)(0.1, **clipped), 5, dense=True)
    close(ours, exact)


def walked(optimizer, gradients):
    """Weights after gradients were applied one by one, and the averages of them."""
    variable = keras.Variable(np.arange(6, dtype="float32").reshape(2, 3))
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply([ops.convert_to_tensor(gradient)], [variable])
    averages = optimizer._model_variables_moving_average if optimizer.use_ema else [variable]
    return numbers(variable), numbers(averages[0])


@pytest.mark.parametrize("name", NAMES)
def test_accumulated_batches_are_one_large_batch(name):
    gradients = np.random.default_rng(1).normal(size=(4, 3, 2, 3)).astype("float32")
    options = {"learning_rate": Noam(1, 2), "use_ema": True, "ema_momentum": 0.7}
    if name == "Adafactor":
        options["relative_step"] = False
    kind = getattr(optimizers, name)
    many = walked(kind(gradient_accumulation_steps=3, **options), gradients.reshape(12, 2, 3))
    few = walked(kind(**options), gradients.mean(axis=1))
    close(many[0], few[0])
    close(many[1], few[1])


def test_weight_decay_leaves_weights_of_one_axis_alone():
    matrix, bias = keras.Variable(np.ones((2, 3))), keras.Variable(np.ones(3))
    optimizer = optimizers.AdamW(0.5, weight_decay=0.1)
    optimizer.build([matrix, bias])
    optimizer.apply([ops.zeros((2, 3)), ops.zeros(3)], [matrix, bias])
    close(matrix, np.full((2, 3), 0.95))
    close(bias, np.ones(3))


@pytest.mark.parametrize("name", NAMES)
def test_an_optimizer_is_saved_by_its_arguments(name):
    optimizer = getattr(optimizers, name)(Noam(64, 7), weight_decay=0.3, global_clipnorm=2.0)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(again) is type(optimizer)
    assert again.get_config() == optimizer.get_config()


RATES = [(1.0, 0), (0.5, 0), (0.25, 3)]


def rated(kind, gradients, rates=None, **given):
    """Three variables after gradients were applied one by one."""
    variables = [keras.Variable(np.ones((2, 3), "float32")) for _ in RATES]
    optimizer = kind(0.1, weight_decay=0.2, **given, **({} if rates is None else {"rates": rates}))
    optimizer.build(variables)
    for gradient in gradients:
        optimizer.apply([ops.convert_to_tensor(gradient)] * 3, variables)
    return [numbers(variable) for variable in variables]


@pytest.mark.parametrize("steps", [1, 2])
def test_a_variable_with_a_factor_learns_as_at_that_learning_rate(steps):
    gradients = np.random.default_rng(2).normal(size=(7, 2, 3)).astype("float32")
    given = {} if steps == 1 else {"gradient_accumulation_steps": steps}
    for name in NAMES:
        kind = getattr(optimizers, name)
        given |= {"relative_step": False} if name == "Adafactor" else {}
        _, half, _ = rated(kind, gradients, RATES, **given)
        expected = keras.Variable(np.ones((2, 3), "float32"))
        alone = kind(0.05, weight_decay=0.2, **given)
        alone.build([expected])
        for gradient in gradients:
            alone.apply([ops.convert_to_tensor(gradient)], [expected])
        close(half, numbers(expected))
        given.pop("relative_step", None)


@pytest.mark.parametrize("given", [{"amsgrad": True}, {"epsilon": 0.1, "beta_2": 0.9}])
def test_adam_has_the_arguments_of_keras_own(given):
    gradients = np.random.default_rng(2).normal(size=(5, 2, 3)).astype("float32")
    ours, _ = walked(optimizers.Adam(0.1, weight_decay=0.2, **given), gradients)
    expected, _ = walked(keras.optimizers.Adam(0.1, weight_decay=0.2, **given), gradients)
    close(ours, expected)


def test_a_variable_learns_from_its_first_step_on_and_knows_the_gradients_before():
    """Adam beside its formula in float64."""
    gradients = np.random.default_rng(3).normal(size=(5, 2, 3)).astype("float32")
    *_, late = rated(optimizers.Adam, gradients[:3], RATES)
    np.testing.assert_array_equal(late, np.ones((2, 3)))
    *_, late = rated(optimizers.Adam, gradients, RATES)
    weight, mean, square = np.ones((2, 3)), 0.0, 0.0
    for step, gradient in enumerate(gradients.astype("float64"), 1):
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        if step > 3:
            rate = 0.25 * 0.1
            weight = weight - rate * 0.2 * weight
            direction = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-7)
            weight = weight - rate * direction
    close(late, weight)


def test_rates_are_saved_and_there_must_be_one_for_each_variable():
    optimizer = optimizers.AdamW(0.1, rates=RATES)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert again.get_config() == optimizer.get_config()
    with pytest.raises(ValueError, match="AdamW: rates must have a pair for each of the 1 var"):
        again.build([keras.Variable(np.ones(3))])

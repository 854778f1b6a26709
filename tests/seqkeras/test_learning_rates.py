import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.learning_rates import Noam, WarmUp
from tests.arrays import close, numbers


def test_noam_is_the_papers_formula():
    schedule = Noam(512, warmup_steps=400, scale=2.0)
    for step in (1, 2, 399, 400, 401, 100_000):
        expected = 2.0 * 512**-0.5 * min(step**-0.5, step * 400**-1.5)
        close(schedule(step - 1), np.float32(expected))


def test_noam_grows_until_the_warm_up_ends_and_falls_from_there():
    rates = [float(Noam(64, warmup_steps=7)(step)) for step in range(20)]
    assert np.argmax(rates) == 6
    assert np.all(np.diff(rates[:7]) > 0) and np.all(np.diff(rates[6:]) < 0)


def test_an_optimizer_goes_by_it_and_keeps_it():
    optimizer = keras.optimizers.Adam(Noam(64, warmup_steps=7))
    variable = keras.Variable(np.zeros(3, "float32"))
    optimizer.build([variable])
    rates = []
    for _ in range(3):
        rates.append(float(numbers(optimizer.learning_rate)))
        optimizer.apply([ops.ones(3)])
    close(rates, [float(Noam(64, warmup_steps=7)(step)) for step in range(3)])
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert again._learning_rate.get_config() == Noam(64, warmup_steps=7).get_config()


@pytest.mark.parametrize("name", ["hidden_dim", "warmup_steps", "scale"])
def test_what_is_not_positive_is_refused(name):
    message = r"^Noam: hidden_dim, warmup_steps and scale must be positive; received"
    with pytest.raises(ValueError, match=message):
        Noam(**{"hidden_dim": 64, name: 0})


def test_a_warm_up_grows_to_the_rate_and_hands_over():
    after = keras.optimizers.schedules.PolynomialDecay(0.5, 10, 0.0)
    for schedule, last in ((WarmUp(0.5, 5, after), 0.25), (WarmUp(0.5, 5), 0.5)):
        rates = [float(schedule(step)) for step in range(11)]
        close(np.array(rates[:6]), np.arange(6) / 10)
        close(rates[10], np.float32(last))


def test_without_warm_up_steps_the_rate_is_there_at_once():
    assert float(WarmUp(0.5, 0)(0)) == 0.5


def test_a_warm_up_is_saved_with_what_comes_after():
    after = keras.optimizers.schedules.CosineDecay(0.5, 10)
    optimizer = keras.optimizers.SGD(WarmUp(0.5, 5, after))
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    for step in range(15):
        close(again._learning_rate(step), optimizer._learning_rate(step))
    assert WarmUp.from_config(WarmUp(0.5, 5).get_config()).after is None


@pytest.mark.parametrize("arguments", [(0, 5), (0.5, -1)])
def test_a_warm_up_that_can_not_be_is_refused(arguments):
    with pytest.raises(ValueError, match="^WarmUp: learning_rate must be positive and warmup_"):
        WarmUp(*arguments)

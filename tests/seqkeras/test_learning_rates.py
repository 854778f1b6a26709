import keras
import numpy as np
from keras import ops

from seqkeras.learning_rates import Noam, WarmUp
from tests.arrays import close, numbers
from tests.refusals import refusals


def test_noam_is_the_papers_formula():
    schedule = Noam(512, warmup_steps=400, scale=2.0)
    for step in (1, 2, 399, 400, 401, 100_000):
        expected = 2.0 * 512**-0.5 * min(step**-0.5, step * 400**-1.5)
        close(schedule(step - 1), np.float32(expected))


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


def test_a_warm_up_grows_to_the_rate_and_hands_over():
    after = keras.optimizers.schedules.PolynomialDecay(0.5, 10, 0.0)
    assert float(WarmUp(0.5, 0)(0)) == 0.5
    for schedule, last in ((WarmUp(0.5, 5, after), 0.25), (WarmUp(0.5, 5), 0.5)):
        rates = [float(schedule(step)) for step in range(11)]
        close(np.array(rates[:6]), np.arange(6) / 10)
        close(rates[10], np.float32(last))


def test_a_warm_up_is_saved_with_what_comes_after():
    after = keras.optimizers.schedules.CosineDecay(0.5, 10)
    optimizer = keras.optimizers.SGD(WarmUp(0.5, 5, after))
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    for step in range(15):
        close(again._learning_rate(step), optimizer._learning_rate(step))
    assert WarmUp.from_config(WarmUp(0.5, 5).get_config()).after is None


POSITIVE = "Noam: hidden_dim, warmup_steps and scale must be positive; received"
test_rates_that_can_not_be_are_refused = refusals(
    (lambda: Noam(0), POSITIVE),
    (lambda: Noam(64, warmup_steps=0), POSITIVE),
    (lambda: Noam(64, scale=0), POSITIVE),
    (lambda: WarmUp(0, 5), "WarmUp: learning_rate must be positive and warmup_"),
    (lambda: WarmUp(0.5, -1), "WarmUp: learning_rate must be positive and warmup_"),
)

import functools

import numpy as np
import pytest

from seqkeras.models import Forecaster
from tests.agreement import DTYPES
from tests.arrays import close, floats, numbers, randomize
from tests.catalogue import models
from tests.catalogue.case import B, S, T
from tests.complex_step import assert_equals_loops
from tests.conftest import others_long
from tests.references.forecaster import forecast
from tests.refusals import refusals

every_forecaster = pytest.mark.parametrize(
    "case", others_long(models.FORECASTERS), ids=lambda case: case.name
)
every_quantiles = pytest.mark.parametrize("quantiles", others_long([[0.1, 0.6], []]))
SIZES = {"horizon": 3, "units": 11, "num_layers": 2}
WINDOW = models.FORECASTERS[0].inputs()
TAUGHT = WINDOW | {"targets": floats(B, T, 2, seed=5)}


def weights_of(model):
    """The model's weights as the reference names them."""
    stacks = {"encoder": model.encoder}
    if model.decoder is not None:
        stacks["decoder"] = model.decoder
    named = {
        name: [layer.weights for layer in stack.recurrent_layers] for name, stack in stacks.items()
    }
    return named | {"output": model.output_layer.weights}


def expected_predictions(model, weights, inputs):
    known = inputs.get("known", np.zeros((B, model.sizes["horizon"], 0)))
    rows = [
        forecast(
            inputs["window"][row, :length],
            known[row],
            model.get_config()["cell"],
            weights,
            num_targets=model.sizes["num_targets"],
            quantiles=model.quantiles,
            scale=model.scale,
            targets=inputs["targets"][row] if "targets" in inputs else None,
        )
        for row, length in enumerate(inputs["lengths"])
    ]
    return np.array(rows)


@every_forecaster
@pytest.mark.parametrize("dtype", DTYPES)
def test_predictions_and_gradients_are_the_formula(case, dtype):
    assert_equals_loops(case.build, dtype, case.inputs(), weights_of, expected_predictions)


def gru_forecaster(**options):
    model = Forecaster(**SIZES, num_targets=2, **options)
    model(WINDOW)
    return randomize(model)


@pytest.mark.parametrize("decoder", ["direct", "recurrent"])
@every_quantiles
@pytest.mark.parametrize("dtype", DTYPES)
def test_predictions_of_a_scaled_gru_and_gradients_are_the_formula(decoder, quantiles, dtype):
    options = {"decoder": decoder, "quantiles": quantiles, "scale": True}
    make = functools.partial(gru_forecaster, **options)
    assert_equals_loops(make, dtype, WINDOW, weights_of, expected_predictions)


@pytest.mark.parametrize("scale", others_long([True, False]))
@every_quantiles
@pytest.mark.parametrize("dtype", DTYPES)
def test_predictions_and_gradients_under_teacher_forcing_are_the_formula(scale, quantiles, dtype):
    options = {"decoder": "recurrent", "quantiles": quantiles, "scale": scale}
    assert_equals_loops(
        functools.partial(gru_forecaster, **options),
        dtype,
        TAUGHT,
        weights_of,
        expected_predictions,
        call=lambda model, inputs: model(inputs, training=True),
    )


def test_targets_teach_in_training_and_are_not_seen_at_inference():
    model = gru_forecaster(decoder="recurrent")
    free = numbers(model(WINDOW))
    close(model(TAUGHT), free)
    close(model(WINDOW, training=True), free)
    assert np.abs(numbers(model(TAUGHT, training=True)) - free).max() > 0.01


@every_forecaster
def test_a_window_without_a_step_gives_numbers(case):
    model, inputs = case.built(), case.inputs()
    predictions = numbers(model(inputs | {"lengths": np.array([S, 0])}))
    assert np.all(np.isfinite(predictions))


def test_the_decoder_reads_the_quantile_nearest_to_one_half():
    places = {
        tuple(quantiles): Forecaster(**SIZES, quantiles=quantiles).middle
        for quantiles in ([0.9], [0.1, 0.5, 0.9], [0.2, 0.9], [0.1, 0.2, 0.6])
    }
    assert list(places.values()) == [0, 1, 0, 2]


def made(**change):
    return lambda: Forecaster(**SIZES | change)


def of_known():
    return Forecaster(**SIZES, num_targets=2, num_known=5)


def called(window=(2, 5, 7), known=(2, 3, 5)):
    def call():
        model = of_known()
        model({"window": floats(2, 5, 7), "known": floats(2, 3, 5)})
        model({"window": floats(*window), "known": floats(*known)})

    return call


RISING = "quantiles must increase between 0 and 1; received"
test_arguments_and_inputs_that_do_not_fit_are_refused = refusals(
    (made(cell="q"), "Forecaster: cell must be one of ['gru', 'lstm', 'qrnn', 'simple_rnn'], ..."),
    (made(decoder="q"), "decoder must be one of ('direct', 'recurrent'); received 'q'."),
    (made(quantiles=[0.5, 0.5]), f"{RISING} [0.5, "),
    (made(quantiles=[0.0]), f"{RISING} [0.0]."),
    (
        lambda: of_known().build({"window": (2, 5, 1), "known": (2, 3, 5)}),
        "Forecaster: window must have shape (batch, length, features), 2 features ",
    ),
    (
        lambda: of_known().build({"window": (2, 5), "known": (2, 3, 5)}),
        "Forecaster: window must have shape ...; received (2, 5).",
    ),
    (lambda: of_known().build({"window": (2, 5, 7)}), "Forecaster: inputs must hold ['known']; re"),
    (
        lambda: of_known().build({"window": (2, 5, 7), "known": (2, 5, 5)}),
        "Forecaster: known must have shape (batch, 3, 5); received (2, 5, 5).",
    ),
    (called(window=(2, 5, 3)), "window must have 7 features, ...; received (2, 5, 3)."),
    (called(window=(2, 7)), "window must have shape ...; received (2, 7)."),
    (called(known=(2, 3, 1)), "known must have shape (batch, 3, 5); received (2, 3, 1)."),
)

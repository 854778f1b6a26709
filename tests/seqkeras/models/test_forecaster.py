import functools

import keras
import numpy as np
import pytest

from seqkeras.losses import PinballLoss
from seqkeras.models import Forecaster
from tests.agreement import DTYPES
from tests.arrays import close, floats, needs_tensorflow, numbers, randomize
from tests.catalogue import models
from tests.catalogue.case import B, D, S, T
from tests.complex_step import assert_equals_loops
from tests.conftest import others_long
from tests.references.forecaster import forecast
from tests.seqkeras.models.support import compiled, losses_by_heart

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
def test_without_lengths_every_step_is_real(case):
    model, inputs = case.build(), case.inputs()
    without = {name: each for name, each in inputs.items() if name != "lengths"}
    close(model(without), model(inputs | {"lengths": np.array([S, S])}))


@every_forecaster
def test_a_window_without_a_step_gives_numbers(case):
    model, inputs = case.build(), case.inputs()
    predictions = numbers(model(inputs | {"lengths": np.array([S, 0])}))
    assert np.all(np.isfinite(predictions))


@pytest.mark.parametrize("decoder", ["direct", "recurrent"])
def test_a_scaled_forecast_moves_with_its_window(decoder):
    model = Forecaster(**SIZES, decoder=decoder, num_targets=2, scale=True, quantiles=[0.2, 0.5])
    window = floats(B, 13, D)
    plain = numbers(model({"window": window}))
    close(model({"window": 100 * window + 1000}), 100 * plain + 1000, rtol=1e-3)


@pytest.mark.parametrize("decoder", ["direct", "recurrent"])
def test_quantiles_never_cross(decoder):
    model = Forecaster(**SIZES, decoder=decoder, quantiles=[0.1, 0.2, 0.5, 0.9])
    window = floats(17, S, 1)
    model({"window": window})
    randomize(model)
    assert np.all(np.diff(numbers(model({"window": 10 * window})), axis=-1) > 0)


def test_the_decoder_reads_the_quantile_nearest_to_one_half():
    places = {
        tuple(quantiles): Forecaster(**SIZES, quantiles=quantiles).middle
        for quantiles in ([0.9], [0.1, 0.5, 0.9], [0.2, 0.9], [0.1, 0.2, 0.6])
    }
    assert list(places.values()) == [0, 1, 0, 2]


def test_dropout_drops_in_training_only():
    for case in models.FORECASTERS:
        model, inputs = case.build(), case.inputs()
        whole = numbers(model(inputs))
        close(model(inputs, training=False), whole)
        assert np.abs(numbers(model(inputs, training=True)) - whole).max() > 0.01


@pytest.mark.parametrize(
    "change, message",
    [
        ({"horizon": 0}, r"horizon must be a positive integer; received 0\.$"),
        ({"num_layers": 0}, r"num_layers must be a positive integer; received 0\.$"),
        ({"num_known": -1}, r"num_known must be at least 0; received -1\.$"),
        ({"cell": "q"}, r"cell must be one of \['gru', 'lstm', 'qrnn', 'simple_rnn'\], .* 'q'\.$"),
        ({"decoder": "q"}, r"decoder must be one of \('direct', 'recurrent'\); received 'q'\.$"),
        ({"quantiles": [0.5, 0.5]}, r"quantiles must increase between 0 and 1; received \[0\.5, "),
        ({"quantiles": [0.0]}, r"quantiles must increase between 0 and 1; received \[0\.0\]\.$"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change, message):
    with pytest.raises(ValueError, match=f"^Forecaster: {message}"):
        Forecaster(**SIZES | change)


KNOWN = {"known": (2, 3, 5)}


@pytest.mark.parametrize(
    "shapes, message",
    [
        (
            {"window": (2, 5, 1), **KNOWN},
            r"window must have shape \(batch, length, features\), 2 features ",
        ),
        ({"window": (2, 5), **KNOWN}, r"window must have shape .*; received \(2, 5\)\.$"),
        ({"window": (2, 5, 7)}, r"inputs must hold \['known'\]; received \['window'\]\.$"),
        (
            {"window": (2, 5, 7), "known": (2, 5, 5)},
            r"known must have shape \(batch, 3, 5\); received \(2, 5, 5\)\.$",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_refused(shapes, message):
    model = Forecaster(**SIZES, num_targets=2, num_known=5)
    with pytest.raises(ValueError, match=f"^Forecaster: {message}"):
        model.build(shapes)


@pytest.mark.parametrize(
    "shapes, message",
    [
        ({"window": (2, 5, 3)}, r"window must have 7 features, .*; received \(2, 5, 3\)\."),
        ({"window": (2, 7)}, r"window must have shape .*; received \(2, 7\)\."),
        ({"known": (2, 3, 1)}, r"known must have shape \(batch, 3, 5\); received \(2, 3, 1\)\."),
    ],
)
def test_a_built_model_refuses_inputs_of_other_shapes(shapes, message):
    model, right = Forecaster(**SIZES, num_targets=2, num_known=5), {"window": (2, 5, 7), **KNOWN}
    model({name: floats(*shape) for name, shape in right.items()})
    with pytest.raises(ValueError, match=f"Forecaster: {message}"):
        model({name: floats(*shape) for name, shape in {**right, **shapes}.items()})


@pytest.mark.long
@needs_tensorflow
def test_a_model_learns_a_batch_by_heart():
    keras.utils.set_random_seed(0)
    quantiles = [0.2, 0.9]
    model = Forecaster(3, 11, decoder="recurrent", num_targets=2, quantiles=quantiles)
    inputs, targets = models.FORECASTERS[0].inputs(), floats(B, T, 2, seed=3)
    first, last = losses_by_heart(model, inputs, targets, PinballLoss(quantiles), 150, 0.03)
    assert first > 0.2 and last < 0.03


def waves(random, rows, length=20, noise=0.1):
    """Sines of any phase and of periods 8 to 12, with noise: (rows, length, 1)."""
    phase, period = random.uniform(0, 7, (rows, 1)), random.uniform(8, 12, (rows, 1))
    series = np.sin(phase + 2 * np.pi * np.arange(length) / period)
    return (series + random.normal(0, noise, series.shape))[..., None].astype("float32")


@pytest.mark.long
@needs_tensorflow
@pytest.mark.parametrize("decoder", ["direct", "recurrent"])
def test_a_forecast_of_waves_comes_near_the_noise(decoder):
    keras.utils.set_random_seed(0)
    random = np.random.default_rng(0)
    seen, unseen = waves(random, 2048), waves(random, 256)
    inputs = {"window": seen[:, :16]}
    if decoder == "recurrent":
        inputs["targets"] = seen[:, 16:]
    model = compiled(Forecaster(4, 32, decoder=decoder), inputs, "mse", 0.01)
    model.fit(inputs, seen[:, 16:], batch_size=64, epochs=6, verbose=0)
    predictions = numbers(model({"window": unseen[:, :16]}))
    error = np.abs(predictions - unseen[:, 16:]).mean()
    naive = np.abs(unseen[:, 15:16] - unseen[:, 16:]).mean()
    assert error < 0.2 < 3 * error < naive


@pytest.mark.long
@needs_tensorflow
def test_marked_numbers_are_added():
    keras.utils.set_random_seed(0)
    random = np.random.default_rng(0)
    values, marks = random.random((4096, 10)), np.zeros((4096, 10))
    for row in marks:
        row[random.choice(10, 2, replace=False)] = 1
    window = np.stack([values, marks], axis=-1).astype("float32")
    sums = (values * marks).sum(axis=1)[:, None, None]
    inputs = {"window": window[256:]}
    model = compiled(Forecaster(1, 32, cell="lstm"), inputs, "mse", 0.01)
    model.fit(inputs, sums[256:], batch_size=64, epochs=8, verbose=0)
    error = numbers(model({"window": window[:256]})) - sums[:256]
    assert np.abs(error).mean() < 0.05 < np.abs(sums - sums.mean()).mean() / 5


@pytest.mark.long
@needs_tensorflow
def test_quantiles_hold_their_share_of_the_targets():
    keras.utils.set_random_seed(0)
    quantiles = [0.1, 0.5, 0.9]
    noise = np.random.default_rng(0).normal(3, 2, (6144, 5, 1)).astype("float32")
    inputs = {"window": noise[:4096, :3]}
    model = Forecaster(2, 8, quantiles=quantiles)
    compiled(model, inputs, PinballLoss(quantiles), 0.01)
    model.fit(inputs, noise[:4096, 3:], batch_size=64, epochs=5, verbose=0)
    predictions = numbers(model({"window": noise[4096:, :3]}))
    under = (noise[4096:, 3:, :, None] < predictions).mean(axis=(0, 1, 2))
    close(under, np.array(quantiles), atol=0.03)

import keras
import numpy as np
import pytest

from seqkeras.losses import PinballLoss
from seqkeras.models import Forecaster
from tests.arrays import close, floats, needs_tensorflow, numbers, randomize
from tests.catalogue import models
from tests.catalogue.case import B, D, S, T
from tests.references.forecaster import forecast
from tests.seqkeras.models.support import compiled, losses_by_heart, needs_float64

every_forecaster = pytest.mark.parametrize("case", models.FORECASTERS, ids=lambda case: case.name)
SIZES = {"horizon": 3, "units": 11, "num_layers": 2}


def expected_row(model, inputs, row, targets=None):
    def weights(stack):
        return [
            [each.astype("float64") for each in layer.get_weights()]
            for layer in stack.recurrent_layers
        ]

    named = {"encoder": weights(model.encoder), "output": model.output_layer.get_weights()}
    if model.decoder is not None:
        named["decoder"] = weights(model.decoder)
    length = inputs["lengths"][row]
    known = inputs.get("known", np.zeros((B, model.sizes["horizon"], 0)))
    return forecast(
        inputs["window"][row, :length].astype("float64"),
        known[row].astype("float64"),
        model.get_config()["cell"],
        named,
        num_targets=model.sizes["num_targets"],
        quantiles=model.quantiles,
        scale=model.scale,
        targets=None if targets is None else targets[row],
    )


@every_forecaster
def test_predictions_are_the_formula(case):
    model, inputs = case.build(), case.inputs()
    actual = numbers(model(inputs))
    for row in range(B):
        close(actual[row], expected_row(model, inputs, row), rtol=1e-4, atol=1e-5)


@needs_float64
@pytest.mark.parametrize("decoder", ["direct", "recurrent"])
@pytest.mark.parametrize("quantiles", [[], [0.1, 0.6]])
def test_a_float64_model_is_the_formula_to_nine_digits(decoder, quantiles):
    options = {"decoder": decoder, "quantiles": quantiles, "scale": True}
    model = Forecaster(**SIZES, cell="gru", num_targets=2, **options, dtype="float64")
    inputs = models.FORECASTERS[0].inputs()
    model(inputs)
    actual = numbers(randomize(model)(inputs))
    for row in range(B):
        close(actual[row], expected_row(model, inputs, row), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("quantiles", [[], [0.1, 0.6]])
def test_targets_teach_in_training_and_are_not_seen_at_inference(scale, quantiles):
    model = Forecaster(
        **SIZES, decoder="recurrent", num_targets=2, quantiles=quantiles, scale=scale
    )
    inputs, targets = models.FORECASTERS[0].inputs(), floats(B, T, 2, seed=5)
    model(inputs)
    randomize(model)
    free, taught = model(inputs), numbers(model(inputs | {"targets": targets}, training=True))
    close(model(inputs | {"targets": targets}), free)
    close(model(inputs, training=True), free)
    assert np.abs(taught - numbers(free)).max() > 0.01
    for row in range(B):
        close(taught[row], expected_row(model, inputs, row, targets), rtol=1e-4, atol=1e-5)


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
        ({"horizon": 0}, r"every size must be at least 1; received .*'horizon': 0"),
        ({"num_layers": 0}, r"every size must be at least 1; received .*'num_layers': 0"),
        ({"num_known": -1}, r"num_known must be at least 0; received -1\.$"),
        ({"cell": "q"}, r"cell must be one of \['gru', 'lstm', 'simple_rnn'\], or .* 'q'\.$"),
        ({"decoder": "q"}, r"decoder must be one of \('direct', 'recurrent'\); received 'q'\.$"),
        ({"quantiles": [0.5, 0.5]}, r"quantiles must increase between 0 and 1; received \[0\.5, "),
        ({"quantiles": [0.0]}, r"quantiles must increase between 0 and 1; received \[0\.0\]\.$"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change, message):
    with pytest.raises(ValueError, match=f"^Forecaster: {message}"):
        Forecaster(**SIZES | change)


@pytest.mark.parametrize(
    "shapes, message",
    [
        ({"window": (2, 5, 1)}, r"window must have shape \(batch, length, features\), 2 features "),
        ({"window": (2, 5)}, r"window must have shape .*; received \(2, 5\)\.$"),
        ({"window": (2, 5, 7)}, r"known must have shape \(batch, 3, 5\); received \(\)\.$"),
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

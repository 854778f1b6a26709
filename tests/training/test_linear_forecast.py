"""Linear parts of forecasters against scikit-learn, statsmodels and loops."""

import dataclasses
import json

import keras
import numpy as np
import pandas
import pytest
from sklearn.linear_model import Ridge
from statsmodels.tsa.holtwinters import ExponentialSmoothing

from seqkeras import serving
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.serving.times import TimeColumn
from seqkeras.training.parts.forecasting_defaults import (
    context_of,
    cycles_of,
    held_out_of,
    steps_of,
    waves_of,
)
from seqkeras.training.parts.linear_forecast import (
    PENALTIES,
    TRENDS,
    Linear,
    Past,
    _damped_trend,
    _ridge,
    _smoothing,
    may_be_log,
)
from seqkeras.training.tasks.forecasting import ForecastingOptions
from tests.training.commands import evaluated, printed, scores_of

HOUR = TimeColumn(("t",), step=3600, unit="second")


def past(values, known=None):
    values = np.asarray(values, "float64")
    return Past(values, values, np.zeros((len(values), 0)) if known is None else known)


def test_each_penalty_is_the_ridge_regression_of_scikit_learn():
    random = np.random.default_rng(0)
    x, y = random.normal(3, 2, (40, 5)), random.normal(size=(40, 3))
    factors = np.array([1.0, 2, 3, 5, 8])
    found = dict(_ridge(x, y, factors))
    assert [*found] == [*PENALTIES]
    for penalty, (weights, bias) in found.items():
        model = Ridge(penalty).fit(x / (x.std(axis=0) * np.sqrt(factors)), y)
        expected = model.predict(x / (x.std(axis=0) * np.sqrt(factors)))
        np.testing.assert_allclose(x @ weights + bias, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "level, slope, damping", [(0.3, 0.2, 0.9), (1.0, 0.0, 0.8), (0.1, 0.6, 1.0)]
)
def test_the_damped_trend_is_that_of_statsmodels(level, slope, damping):
    values = np.cumsum(np.random.default_rng(1).normal(0.5, 1, 30))
    first = (values[3] - values[0]) / 3
    model = ExponentialSmoothing(
        values[1:],
        trend="add",
        damped_trend=True,
        initialization_method="known",
        initial_level=values[0],
        initial_trend=first,
    )
    fixed = {
        "smoothing_level": level,
        "smoothing_trend": slope,
        "damping_trend": damping,
    }
    expected = model.fit(**fixed, optimized=False).forecast(6)
    found = _damped_trend(values[None], level, slope, damping, 6)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_smoothing_is_chosen_by_the_squares_of_a_loop():
    values = np.cumsum(np.random.default_rng(2).normal(1.0, 2, 80))

    def squares(level_share, slope_share, damping):
        level, slope, total = values[0], np.diff(values[:10]).mean(), 0.0
        for step, value in enumerate(values[1:]):
            error = value - level - damping * slope
            level, slope = (
                level + damping * slope + level_share * error,
                damping * slope + level_share * slope_share * error,
            )
            total += error**2 if step >= 10 else 0
        return total

    chosen = squares(*_smoothing(values))
    random = np.random.default_rng(3)
    assert all(chosen <= squares(*TRENDS[place]) for place in random.integers(0, len(TRENDS), 40))


def test_a_season_on_a_trend_is_found_and_goes_on():
    steps = np.arange(260)
    angle = 2 * np.pi * steps / 24
    values = 5 + 0.05 * steps + 3 * np.sin(angle) - 2 * np.cos(2 * angle)
    known = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    linear = Linear(context=30, horizon=8, orders=(3,), longest=24.0)
    part = linear.fit([past(values[:240], known[:240])])
    assert part.orders == (2,)  # the half of 3, rounded up, is enough
    np.testing.assert_allclose(part.season, [3, 0, 0, -2], atol=1e-6)
    season = linear._regressors(known, part.orders) @ part.season
    answer = (values - season)[210:240] @ part.kernel + part.bias + season[240:248]
    np.testing.assert_allclose(answer, values[240:248], atol=0.02)
    assert part.drifts
    wider = part.season_of((3,), 0)
    np.testing.assert_array_equal(wider, [*part.season, 0, 0])


def test_noise_is_forecast_by_its_mean_and_a_walk_by_its_last_value():
    random = np.random.default_rng(4)
    noise, walk = random.normal(7, 1, 400), np.cumsum(random.normal(0, 1, 400))
    linear = Linear(context=16, horizon=3)
    of_noise, of_walk = linear.fit([past(noise)]), linear.fit([past(walk)])
    assert abs(of_noise.kernel.sum(axis=0)).max() < 0.4 and not of_noise.drifts
    np.testing.assert_allclose(of_walk.kernel.sum(axis=0), 1, atol=0.12)
    assert of_walk.kernel[-1].min() > 0.5 and of_walk.drifts


def test_a_part_of_scaled_numbers_forecasts_scaled_numbers():
    random = np.random.default_rng(5)
    angle = 2 * np.pi * np.arange(200) / 12
    values = 50 + 4 * np.sin(angle) + random.normal(size=200)
    known = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    linear = Linear(context=14, horizon=5, orders=(1,), longest=12.0)
    part = linear.fit([past(values, known)])
    scaled = part.scaled(47.0, 3.0)

    def forecast(part, numbers):
        season = linear._regressors(known, part.orders) @ part.season
        return (numbers - season)[100:114] @ part.kernel + part.bias + season[114:119]

    answer = forecast(scaled, (values - 47) / 3)
    np.testing.assert_allclose(47 + 3 * answer, forecast(part, values), rtol=1e-9)


def test_series_of_different_sizes_have_one_part_by_window():
    random = np.random.default_rng(6)
    shape = np.sin(2 * np.pi * np.arange(150) / 10) + random.normal(0, 0.1, 150)
    both = [past(1 + shape), past(1000 + 1000 * shape)]
    linear = Linear(context=20, horizon=4, by_window=True)
    part, alone = linear.fit(both), linear.fit([both[0], both[0]])
    np.testing.assert_allclose(part.kernel, alone.kernel, atol=1e-6)
    assert part.error == pytest.approx(alone.error, rel=1e-6)


def test_rows_that_are_too_few_or_have_no_targets_have_no_part():
    linear = Linear(context=5, horizon=3)
    assert linear.fit([past(np.arange(8.0))]) is None
    missing = dataclasses.replace(past(np.arange(90.0)), values=np.full(90, np.nan))
    assert linear.fit([missing]) is None
    random = np.random.default_rng(11)
    few = 100 + 5 * np.arange(30.0) + random.normal(0, 1, 30)
    part = linear.careful([past(few)])
    trend = _damped_trend(few[None, -5:], *_smoothing(few), 3)[0]
    np.testing.assert_allclose(few[-5:] @ part.kernel, (few[-1] + trend) / 2)
    assert few[-1] < (few[-5:] @ part.kernel)[0] < few[-1] + 6
    np.testing.assert_allclose(part.errors[-1], few[-3:] - few[-8:-3] @ part.kernel)


@pytest.mark.parametrize(
    "values, expected",
    [([300.0, 360], True), ([0.0, 5], False), ([1.0, 40], False), ([-3.0, 9], False)],
)
def test_logarithms_are_for_values_well_over_zero(values, expected):
    assert may_be_log(np.array([*values, np.nan])) == expected


@pytest.mark.parametrize(
    "time, rows, horizon, context, cycles",
    [
        (HOUR, 5000, 24, 168, ("day", "week")),
        (HOUR, 20_000, 24, 168, ("day", "week", "year")),
        (HOUR, 5000, 200, 400, ("day", "week")),
        (dataclasses.replace(HOUR, step=900), 5000, 4, 336, ("day", "week")),
        (dataclasses.replace(HOUR, step=86_400), 900, 28, 120, ("week", "year")),
        (dataclasses.replace(HOUR, step=1, unit="business day"), 600, 5, 120, ("week", "year")),
        (dataclasses.replace(HOUR, step=7 * 86_400), 1600, 12, 104, ("year",)),
        (dataclasses.replace(HOUR, step=1, unit="month"), 500, 12, 36, ("year",)),
        (dataclasses.replace(HOUR, step=1, unit="month"), 70, 12, 24, ("year",)),
        (dataclasses.replace(HOUR, step=3, unit="month"), 140, 4, 12, ("year",)),
        (dataclasses.replace(HOUR, step=12, unit="month"), 200, 5, 24, ()),
    ],
)
def test_the_step_and_the_length_say_what_is_read(time, rows, horizon, context, cycles):
    assert context_of(time, rows, horizon) == min(context, (rows - horizon) // 3)
    assert cycles_of(time, rows) == cycles


@pytest.mark.parametrize(
    "step, unit, waves",
    [(3600, "second", [4, 3, 2]), (86_400, "second", [0, 3, 2]), (1, "month", [0, 0, 5])]
    + [(7 * 86_400, "second", [0, 0, 5]), (3, "month", [0, 0, 1]), (12, "month", [0, 0, 0])],
)
def test_a_cycle_has_as_many_waves_as_its_steps_can_show(step, unit, waves):
    time = dataclasses.replace(HOUR, step=step, unit=unit)
    assert [waves_of(time, name) for name in ("day", "week", "year")] == waves


def monthly(path, years=14, series=("",), growth=1.01):
    """A CSV file of series that grow, with a season of the year."""
    random, lines = np.random.default_rng(7), ["date,sales" + ",shop" * (len(series) > 1)]
    for place, name in enumerate(series):
        for month in range(12 * years):
            value = 100 * 1000.0**place * growth**month * (1.2 + np.sin(month * np.pi / 6) / 3)
            value *= np.exp(random.normal(0, 0.02))
            date = f"{2000 + month // 12}-{month % 12 + 1:02d}-01"
            lines.append(f"{date},{value:.6g}" + f",{name}" * (len(series) > 1))
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def trained(tmp_path, file, *more):
    options = "--time date --targets sales --horizon 6 --units 8 --model qrnn --passes 2 --looks 1"
    out = ["--out", tmp_path / "run"]
    return printed("forecasting", file, *options.split(), *more, *out), scores_of(tmp_path / "run")


def test_a_file_alone_beats_the_naive_forecasts_and_leaves_as_keras_answers(tmp_path):
    file = monthly(tmp_path / "sales.csv")
    lines, scores = trained(tmp_path, file, "--quantiles", "0.1,0.5,0.9")
    assert "of 36 steps, and 6 to come" in lines[1]
    assert lines[0].strip() == "'sales' is read as its logarithm"
    assert any(line.strip().startswith("step 0 of") for line in lines)
    assert scores["mae"] < 0.6 * scores["forecasts"]["seasonal naive"]["mae"]
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["settings"]["rows"]["time"]["cycles"] == ["year"]
    export(tmp_path / "run", tmp_path / "b", options=ExportOptions(saved_models=False))
    pipeline = serving.load(tmp_path / "b")
    rows = (*pandas.read_csv(file).to_dict("records"),)
    answer = pipeline(rows[-36:])
    model = keras.models.load_model(tmp_path / "run" / "model.keras", compile=False)
    numbers = pipeline.rows
    window, last = numbers.window(rows[-36:], "series")
    known = numbers.future(None, last, 6, "known")
    values = keras.ops.convert_to_numpy(model({"window": window[None], "known": known[None]}))[0]
    np.testing.assert_allclose(answer.values, numbers.unscaled(values)[..., 1], rtol=1e-4)


@pytest.mark.long
def test_a_run_without_cycles_is_evaluated_on_another_file(tmp_path):
    file = monthly(tmp_path / "sales.csv")
    _, scores = trained(tmp_path, file, "--cycles", "none", "--max-steps", "2")
    found = evaluated(tmp_path / "run", file)
    assert found["windows"] > scores["windows"]
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["settings"]["rows"]["time"] is None


@pytest.mark.long
def test_shops_at_one_and_a_thousand_are_forecast_alike(tmp_path):
    file = monthly(tmp_path / "sales.csv", series=("corner", "mall"))
    _, scores = trained(tmp_path, file, "--series-column", "shop")
    seasonal = scores["forecasts"]["seasonal naive"]
    assert scores["mase"] < 0.8 * seasonal["mase"]


@pytest.mark.parametrize(
    "ahead, lowest, more, hinted",
    [
        (-0.1, 1, {}, True),
        (0.1, 1, {}, False),
        (-0.1, -1, {}, False),
        (-0.1, 1, {"scale_by": "file"}, False),
        (-0.1, 1, {"known": ()}, False),
    ],
)
def test_a_model_of_several_series_that_is_behind_names_the_way_to_its_known_columns(
    ahead, lowest, more, hinted, tmp_path
):
    months = [f"{2000 + month // 12}-{month % 12 + 1:02d}-01" for month in range(80)]
    lines = [
        f"{month},{shop},{place % 5},{place % 7 + lowest}"
        for shop in ("corner", "mall")
        for place, month in enumerate(months)
    ]
    (tmp_path / "sales.csv").write_text("\n".join(["date,shop,plan,sales", *lines]) + "\n")
    options = {"time": ("date",), "targets": ("sales",), "numbers": ("plan",), "known": ("plan",)}
    options |= {"series_column": "shop", "horizon": 3, "context": 12} | more
    task = ForecastingOptions(file=str(tmp_path / "sales.csv"), **options).make()
    task.reading.read()
    scores = {"windows": 1, "forecasts": {}, "by_target": {}, "by_step": {"model": [1.0]}}
    scores["baselines"] = {"summary": "model", "ahead": ahead}
    _, *shown = task.scoring.shown(scores)
    hint = "  the linear part knows --known columns with --scale-by file --log sales"
    assert shown == ["  model", *[hint] * hinted]


def test_the_first_look_is_the_linear_part_alone(tmp_path):
    file = monthly(tmp_path / "sales.csv")
    options = {"time": ("date",), "targets": ("sales",), "horizon": 6, "units": 8}
    task = ForecastingOptions(file=file, **options).make()
    task.reading.read()
    for transformer in (False, True):
        options |= {"model": "transformer"} if transformer else {}
        task.modelling.options = ForecastingOptions(file=file, **options)
        model = task.modelling.model(None)
        [layer] = [layer for layer in model.layers if layer.name.startswith("linear_forecast")]
        alone = keras.Model(model.inputs, layer.output)
        random = np.random.default_rng(8)
        given = {
            name: random.normal(size=(4, *array.shape[1:])) for name, array in model.input.items()
        }
        np.testing.assert_allclose(model(given), alone(given), atol=1e-6)


@pytest.mark.parametrize(
    "rows, horizon, held", [(1000, 12, 100), (96, 12, 24), (60, 12, 18), (20, 1, 2)]
)
def test_what_is_held_out_holds_two_horizons(rows, horizon, held):
    assert held_out_of(rows, horizon) == held


@pytest.mark.parametrize("batches, steps", [(10, 100), (1000, 3000), (1200, 3600), (5000, 5000)])
def test_long_series_take_fewer_passes(batches, steps):
    assert steps_of(batches) == steps


def test_errors_of_the_folds_spread_as_what_comes(tmp_path):
    random = np.random.default_rng(9)
    values = np.cumsum(random.normal(0, 2, 900))
    part = Linear(context=12, horizon=3).fit([past(values[:600])])
    spread = [2 * np.sqrt(steps) for steps in (1, 2, 3)]
    np.testing.assert_allclose(part.errors.std(axis=0), spread, rtol=0.15)
    np.testing.assert_allclose(part.scaled(5.0, 4.0).errors, part.errors / 4)
    by_window = Linear(context=12, horizon=3, by_window=True).fit([past(1000 * values[:600])])
    assert 0.1 < by_window.errors.std() < 10  # in deviations of a window

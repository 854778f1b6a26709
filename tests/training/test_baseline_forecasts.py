"""Forecasts that stand beside a model: each against a library's own call, or a loop in float64."""

import datetime
import io
import math
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

from seqkeras.training.parts.baselines import forecasts
from seqkeras.training.parts.baselines.forecasts import Calendar, Smoother, best_smoothing
from seqkeras.training.parts.forecasting import _blocks
from seqkeras.training.parts.forecasting_scores import (
    beside_baselines,
    forecast_errors,
    forecast_table,
)
from seqkeras.training.tasks.forecasting import ForecastingOptions
from tests.training.commands import printed, scores_of

SIZES = {"context": 13, "horizon": 5, "batch_size": 11}
STEPS = {
    "hour": (datetime.timedelta(hours=1), "%Y-%m-%d %H:%M"),
    "day": (datetime.timedelta(days=1), "%Y-%m-%d"),
}


def series(path, count=311, step="hour", period=24, columns=1, end=None):
    """A CSV file of waves with a trend, whose rows from `end` on are something else."""
    draw, (width, form) = random.Random(0), STEPS[step]
    time, lines = datetime.datetime(2024, 1, 1), ["time," + ",".join("xyz"[:columns])]
    for place in range(count):
        wave = math.sin(2 * math.pi * place / period) + 0.002 * place
        values = [wave * (1 + column) + draw.gauss(0, 0.1) for column in range(columns)]
        if end is not None and place >= end:
            values = [draw.gauss(1e3, 1e3) for _ in values]
        lines.append(f"{time.strftime(form)}," + ",".join(f"{value!r}" for value in values))
        time += width
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def windows_of(file, **options):
    """The options, and windows of training and of validation."""
    settings = {"targets": ("x",), "time": ("time",), "cycles": ("none",), **SIZES, **options}
    task = ForecastingOptions(file=file, **settings).make()
    return task.options, *task.reading.read()


def values_of(file):
    """The numbers of the first column of a file, and its times in seconds."""
    with open(file) as lines:
        rows = [line.split(",") for line in [*lines][1:]]
    times = [datetime.datetime.fromisoformat(row[0]) for row in rows]
    since = datetime.datetime(1970, 1, 1)
    return np.array([float(row[1]) for row in rows]), [
        (time - since).total_seconds() for time in times
    ]


@pytest.mark.parametrize(
    ("step", "count", "options", "expected"),
    [
        ("hour", 311, {}, (24, 168)),
        ("day", 311, {}, (7,)),
        ("day", 500, {}, (7, 365)),
        ("hour", 311, {"period": 13}, (13,)),
        ("hour", 311, {"period": 1}, ()),
        ("hour", 311, {"time": ()}, ()),
    ],
)
def test_the_time_between_rows_tells_the_seasons(step, count, options, expected, tmp_path):
    options, _, validation = windows_of(series(tmp_path / "x.csv", count, step), **options)
    assert Calendar.of(validation, options.period).seasons == expected


@pytest.mark.parametrize("period", [24, 168])
def test_the_season_is_the_one_that_repeats(period, tmp_path):
    options, _, validation = windows_of(series(tmp_path / "x.csv", 900, period=period))
    assert Calendar.of(validation, None).best_season(options.horizon) == period


def test_a_short_series_takes_no_season_from_the_long_ones(tmp_path):
    """It has the last value instead, as 30 rows hold no week of hours."""
    header, *lines = Path(series(tmp_path / "x.csv", 900, period=168)).read_text().splitlines()
    lines = [f"{line},{name}" for name, end in (("a", 900), ("b", 30)) for line in lines[:end]]
    (tmp_path / "x.csv").write_text("\n".join([f"{header},name", *lines]) + "\n")
    options, _, validation = windows_of(str(tmp_path / "x.csv"), series_column="name")
    calendar = Calendar.of(validation, None)
    assert calendar.best_season(options.horizon) == 168
    found, _ = forecasts.forecasts(validation, options)
    long, short = calendar.parts
    season, last = found["seasonal naive"], found["persistence"]
    np.testing.assert_array_equal(season[short.places], last[short.places])
    assert len(short.places)
    for place in long.places:
        past = validation[place].past.stop - 168
        np.testing.assert_array_equal(season[place], long.values[past : past + 5])


def test_climatology_is_least_squares_on_a_trend_and_waves(tmp_path):
    file = series(tmp_path / "x.csv", 900)
    options, _, validation = windows_of(file)
    found = forecasts.climatology(validation, Calendar.of(validation, None))
    values, seconds = values_of(file)
    end = validation[0].past.stop
    columns = [[1.0] * 900, [float(row) for row in range(900)]]
    for length, count in ((86_400, 4), (7 * 86_400, 3)):
        for k in range(1, count + 1):
            for wave in (math.cos, math.sin):
                columns.append([wave(2 * math.pi * k * time / length) for time in seconds])
    design = np.array(columns).T
    line = design @ np.linalg.pinv(design[:end]) @ values[:end]
    for window, steps in zip(validation, found, strict=True):
        np.testing.assert_allclose(steps[:, 0], line[window.future], rtol=1e-6)


def test_ridge_is_scikit_learns_behind_a_scaler_with_the_penalty_that_forecasts_best(tmp_path):
    options, train, validation = windows_of(
        series(tmp_path / "x.csv", columns=2), targets=("x", "y")
    )
    calendar = Calendar.of(validation, None)
    [part] = calendar.parts
    waves = calendar.harmonics(part.series)

    def features(windows):
        rows = []
        for window in windows:
            past = part.values[window.past]
            rows.append([*past[-1], *(past - past[-1]).ravel(), *waves[window.future.start]])
        return np.array(rows)

    def changes(windows):
        last = np.array([part.values[window.past.stop - 1] for window in windows])
        target = np.array([window.target for window in windows])
        return (target - last[:, None]).reshape(len(windows), -1)

    first = sorted(window.start for window in train)[-round(len(train) / 5)]
    held = [window for window in train if window.start >= first]
    before = [window for window in train if window.start + options.horizon <= first]
    errors = []
    for alpha in forecasts.ALPHAS:
        fit = make_pipeline(StandardScaler(), Ridge(alpha)).fit(features(before), changes(before))
        spread = changes(before).std(axis=0)
        errors.append(np.mean(abs(fit.predict(features(held)) - changes(held)) / spread))
    alpha = forecasts.ALPHAS[int(np.argmin(errors))]
    fit = make_pipeline(StandardScaler(), Ridge(alpha)).fit(features(train), changes(train))
    expected = fit.predict(features(validation)).reshape(-1, 5, 2)
    ridge = forecasts.Ridge(train, calendar)
    last = np.array([part.values[window.past.stop - 1] for window in validation])
    assert ridge.alpha == alpha
    np.testing.assert_allclose(ridge(validation), expected + last[:, None], rtol=1e-6, atol=1e-8)


def test_ridge_forecasts_series_of_two_scales_as_well_as_each_alone(tmp_path):
    lines = Path(series(tmp_path / "x.csv")).read_text().split("\n")[1:-1]
    rows = [line.split(",") for line in lines]
    large = [f"{time},{500 + 1000 * float(value)!r},large" for time, value in rows]
    both = ["time,x,name", *(f"{line},small" for line in lines), *large]
    (tmp_path / "both.csv").write_text("\n".join(both) + "\n")
    _, train, validation = windows_of(str(tmp_path / "both.csv"), series_column="name")
    calendar = Calendar.of(validation, None)
    found = forecasts.Ridge(train, calendar)(validation)
    small, large = (found[part.places, :, 0] for part in calendar.parts)
    np.testing.assert_allclose(large, 500 + 1000 * small, rtol=1e-6)
    targets = np.stack([validation[place].target for place in calendar.parts[0].places])[..., 0]
    _, train, validation = windows_of(str(tmp_path / "x.csv"))
    alone = forecasts.Ridge(train, Calendar.of(validation, None))(validation)[..., 0]
    assert np.abs(small - targets).mean() < 1.1 * np.abs(alone - targets).mean()


@pytest.mark.parametrize("season", [0, 24])
def test_smoothing_is_statsmodels_forecast_from_each_row(season, tmp_path):
    """The states go on by the rows that came; parameters and first states are of training."""
    file = series(tmp_path / "x.csv", 211)
    values, _ = values_of(file)
    end, origins = 151, np.array([151, 160, 203])
    smoother = Smoother(values, end, season)
    parameters = smoother.fitted()
    found = smoother.forecasts(parameters, origins, 29)
    seasonal = {"seasonal": "add", "seasonal_periods": 24} if season else {}
    kind = {"error": "add", "trend": "add", "damped_trend": True, **seasonal}
    middle, spread = values[:end].mean(), values[:end].std()
    scaled, used = (values - middle) / spread, parameters[[0, 1, 2, 3] if season else [0, 1, 3]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = ETSModel(scaled[:end], initialization_method="heuristic", **kind).smooth(used)
        known = {"initial_level": fitted.initial_level, "initial_trend": fitted.initial_trend}
        known |= {"initial_seasonal": fitted.initial_seasonal} if season else {}
        for origin, steps in zip(origins, found, strict=True):
            model = ETSModel(scaled[:origin], initialization_method="known", **known, **kind)
            expected = middle + spread * model.smooth(used).forecast(29)
            np.testing.assert_allclose(steps, expected, rtol=1e-9)
        default = ETSModel(scaled[:end], initialization_method="heuristic", **kind).fit(disp=False)
    assert fitted.llf >= default.llf - 1e-3 * abs(default.llf)


def test_smoothing_has_the_season_that_forecasts_best():
    draw = random.Random(0)
    values = np.array([math.sin(2 * math.pi * t / 24) + draw.gauss(0, 0.1) for t in range(300)])
    assert best_smoothing(values, [0, 24], 12) == 24
    walk = np.cumsum([draw.gauss(0, 1) for _ in range(300)])
    assert best_smoothing(walk, [0, 24], 12) == 0


@pytest.mark.parametrize("values", [np.arange(7.0), np.full(50, 3.0)])
def test_a_short_or_constant_series_is_forecast_by_its_last_value(values):
    smoother = Smoother(values, len(values) - 2, 0)
    origins = np.array([len(values) - 2, len(values) - 1])
    found = smoother.forecasts(smoother.fitted(), origins, 3)
    np.testing.assert_array_equal(found, np.repeat(values[origins - 1, None], 3, axis=1))


def test_many_series_share_what_is_fitted_on_some(tmp_path, monkeypatch):
    """Parameters of a series that is not fitted are the median of the others'."""
    lines = ["name,time,x"]
    for name in "abcde":
        text = series(tmp_path / "x.csv", 97 + ord(name))
        with open(text) as rows:
            lines += [f"{name},{row.rstrip()}" for row in [*rows][1:]]
    (tmp_path / "all.csv").write_text("\n".join(lines) + "\n")
    _, _, validation = windows_of(str(tmp_path / "all.csv"), series_column="name")
    calendar = Calendar.of(validation, None)
    monkeypatch.setattr(forecasts, "MOST_FITTED", 3)  # a, c and e
    found = forecasts.smoothing(validation, calendar)
    parts = calendar.parts
    own = [Smoother(part.filled[:, 0], part.end, 24).fitted() for part in parts[::2]]
    smoother = Smoother(parts[1].filled[:, 0], parts[1].end, 24)
    expected = smoother.forecasts(np.median(own, axis=0), parts[1].origins, 5)
    np.testing.assert_allclose(found[parts[1].places, :, 0], expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("rows", "fitted", "expected"),
    [
        (500, 3, ""),
        (500, 1, "1 of 2 series"),
        (50, 3, "the last 50 rows"),
        (50, 1, "1 of 2 series, the last 50 rows"),
    ],
)
def test_what_smoothing_is_fitted_on_is_told(rows, fitted, expected, tmp_path, monkeypatch):
    header, *lines = Path(series(tmp_path / "x.csv")).read_text().splitlines()
    lines = [f"{line},{name}" for name in "ab" for line in lines]
    (tmp_path / "x.csv").write_text("\n".join([f"{header},name", *lines]) + "\n")
    options, train, validation = windows_of(str(tmp_path / "x.csv"), series_column="name")
    monkeypatch.setattr(forecasts, "MOST_SMOOTHED", rows)
    monkeypatch.setattr(forecasts, "MOST_FITTED", fitted)
    _, learned_on = forecasts.forecasts(validation, options, train)
    assert learned_on.get("exponential smoothing", "") == expected


def test_what_is_held_out_is_not_learned(tmp_path):
    """Forecasts from the first validation window's past, whatever follows it."""
    found = []
    for name, end in (("same.csv", None), ("other.csv", 280)):
        options, train, validation = windows_of(series(tmp_path / name, end=end))
        assert validation[0].past.stop == 280
        values, _ = forecasts.forecasts(validation, options, train)
        found.append({method: steps[0] for method, steps in values.items()})
    assert [*found[0]] == [
        "persistence",
        "seasonal naive",
        "climatology",
        "ridge",
        "exponential smoothing",
    ]
    for method, steps in found[0].items():
        np.testing.assert_array_equal(steps, found[1][method])


def test_windows_that_share_rows_to_come_make_a_block(tmp_path):
    _, _, validation = windows_of(series(tmp_path / "x.csv"))
    blocks = _blocks(validation, 5).tolist()
    assert blocks == sorted(blocks) and len({*blocks}) == len(validation) // 5 + 1
    assert max(map(blocks.count, blocks)) == 5


def test_long_files_are_learned_in_part(tmp_path, monkeypatch):
    options, train, validation = windows_of(series(tmp_path / "x.csv"))
    monkeypatch.setattr(forecasts, "MOST_NUMBERS", 50 * 13)
    _, learned_on = forecasts.forecasts(validation, options, train)
    assert learned_on == {"ridge": f"50 of {len(train)} windows"}


SMALL = ("--time", "time", "--targets", "x", "--context", 13, "--horizon", 5, "--batch-size", 11)
SMALL += ("--units", 3, "--max-steps", 2, "--model", "qrnn", "--looks", 1)


def test_a_training_says_whether_the_model_is_ahead(tmp_path):
    file = series(tmp_path / "x.csv", 611)
    lines = printed("forecasting", file, *SMALL, "--out", tmp_path / "run")
    scores = scores_of(tmp_path / "run")
    comparison, by_method = scores["baselines"], scores["forecasts"]
    assert [*comparison["methods"]] == [*by_method]
    best = min((name for name in by_method if name != "model"), key=lambda n: by_method[n]["mase"])
    assert comparison["best"] == best and comparison["compared_by"] == "MASE"
    assert comparison["ahead"] == pytest.approx(by_method[best]["mase"] / scores["mase"] - 1)
    low, high = comparison["interval"]
    assert low <= comparison["ahead"] <= high
    assert f"  {comparison['summary']}" in lines
    shown = f"MASE: model {scores['mase']:.4g}, {best} {by_method[best]['mase']:.4g}: behind by "
    assert comparison["summary"].startswith(shown)


@pytest.mark.parametrize("value", [1.234, 1.234e7, 1.234e-5])
@pytest.mark.parametrize("names", [["x"], ["the_highest_temperature", "y"]])
def test_no_name_or_number_of_the_table_is_cut_at_80_columns(value, names):
    methods = "model", "persistence", "seasonal naive", "climatology", "ridge"
    methods += ("exponential smoothing",)
    errors = {method: dict.fromkeys(("mae", "rmse", "mase"), value) for method in methods}
    scores = {
        **dict.fromkeys(("mae", "rmse", "mase"), value),
        "windows": 7,
        "forecasts": errors,
        "by_target": dict.fromkeys(names, errors),
        "by_step": dict.fromkeys(methods, [value] * 365),
        "baselines": {"learned_on": {"ridge": "50 of 272 windows"}},
    }
    terminal = Console(width=80, file=io.StringIO())
    terminal.print(forecast_table(scores))
    text = terminal.file.getvalue()
    words = text.split()
    assert "…" not in text and max(map(len, text.splitlines())) <= 80
    assert {word for method in methods for word in method.split()} <= {*words}
    num_targets = len(names) if len(names) > 1 else 0
    assert words.count(f"{value:.4g}") == 6 * (3 + num_targets + 12)
    assert "ridge on 50 of 272 windows" in text


@pytest.mark.long
def test_baselines_are_left_out_on_request(tmp_path):
    file = series(tmp_path / "x.csv")
    options = (*SMALL, "--baselines", "false", "--out", tmp_path / "run")
    lines = printed("forecasting", file, *options)
    scores = scores_of(tmp_path / "run")
    assert [*scores["forecasts"]] == ["model"] and "baselines" not in scores
    assert f"MAE is {scores['mae']:.4g}, MASE {scores['mase']:.3f}" in " ".join(lines)


def test_means_over_targets_are_compared_where_there_is_no_scale():
    """A bundle's own model, whose naive errors nobody knows; targets are missing."""
    draw = np.random.default_rng(0)
    targets = draw.normal(size=(53, 5, 2))
    targets[draw.random(targets.shape) < 0.2] = np.nan
    model, ridge = targets + 1, targets + 2
    model[..., 1] += 3
    model, ridge = (np.nan_to_num(values) for values in (model, ridge))
    unknown = np.full((53, 2), np.nan)
    forecasts = {"model": model, "ridge": ridge}
    scores = {
        "mae": 2.5,
        "forecasts": {
            name: forecast_errors(values, targets, unknown) for name, values in forecasts.items()
        },
    }
    blocks = np.arange(53) // 5
    found = beside_baselines(scores, forecasts, targets, unknown, blocks, 0, {})
    assert found["compared_by"] == "MAE"
    assert found["ahead"] == pytest.approx((2 + 2) / (1 + 4) - 1)
    assert found["interval"] == [pytest.approx(-0.2)] * 2  # each window is off by as much

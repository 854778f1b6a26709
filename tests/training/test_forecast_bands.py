"""Bands of forecasts, from a training to what a bundle answers."""

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.results import Forecasting
from seqkeras.training.parts.forecast_bands import Held, calibrated_bands, in_words
from seqkeras.training.parts.forecasting_scores import forecast_scores, forecast_summary
from tests.arrays import close
from tests.training.commands import answers_of_run, exported, printed, scores_of
from tests.training.test_forecasting import COLUMNS, SIZES, arguments, hourly

WIDE = 1.2815515655446004  # the quantile 0.9 of a normal number
QUANTILES = (0.1, 0.5, 0.9)


def drawn(windows, horizon, factors, quantiles=QUANTILES, seed=0):
    """Windows one step apart of normal numbers; bands so many times as narrow as they should be."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(windows + horizon, len(factors)))
    targets = np.stack([rows[start : start + horizon] for start in range(windows)])
    nominal = np.quantile(random.normal(size=99_991), quantiles)
    values = nominal / np.array(factors)[:, None] + np.zeros((*targets.shape, 1))
    return Held(values, targets, np.arange(windows), np.zeros(windows, int))


def test_a_band_holds_its_share():
    held = drawn(1009, 7, (2.0, 0.5))
    factors, told = calibrated_bands(QUANTILES, held)
    np.testing.assert_allclose(factors, [[2.0] * 2, [0.5] * 2], rtol=0.06)
    assert told["windows"] == 1009 and told["expected"] == pytest.approx(0.8)
    expected = np.mean(abs(held.targets) < WIDE / np.array([2.0, 0.5]))
    assert told["before"]["coverage"] == pytest.approx(expected, abs=0.01)
    assert told["after"]["coverage"] == pytest.approx(0.8, abs=0.02)
    assert told["after"]["pinball_loss"] < told["before"]["pinball_loss"]
    for quantile, share in told["reliability"]["after"]:
        assert share == pytest.approx(quantile, abs=0.03)


def test_a_factor_is_the_share_of_errors_that_numpy_counts():
    """A target that was always under its median, of windows that share no row."""
    random = np.random.default_rng(1)
    targets = -random.gamma(2.0, size=(101, 1, 1))
    held = Held(np.zeros((101, 1, 1, 3)) + [-1, 0, 2], targets, np.arange(101), np.zeros(101, int))
    factors, _ = calibrated_bands(QUANTILES, held)
    expected = np.quantile(-targets, 0.8 * (1 + 1 / 101))
    np.testing.assert_allclose(factors, [[expected] * 2])


@pytest.mark.parametrize("quantiles", [(0.05, 0.25, 0.5, 0.75, 0.95), (0.1, 0.4, 0.6, 0.9)])
def test_bands_within_bands_hold_their_shares_too(quantiles):
    held = drawn(5003, 3, (3.0,), quantiles)
    _, told = calibrated_bands(quantiles, held)
    for quantile, share in told["reliability"]["after"]:
        assert share == pytest.approx(quantile, abs=0.03)


def test_a_quantile_without_its_opposite_is_alone():
    factors, told = calibrated_bands((0.5, 0.9), drawn(1009, 3, (2.0,), (0.5, 0.9)))
    assert factors.shape == (1, 1) and factors[0, 0] == pytest.approx(2, rel=0.1)
    assert told["reliability"]["after"][1][1] == pytest.approx(0.9, abs=0.02)


def test_missing_targets_count_nothing():
    held = drawn(211, 3, (2.0, 3.0))
    some = held.targets.copy()
    some[:, 1], some[..., 1] = np.nan, np.nan
    factors, _ = calibrated_bands(QUANTILES, held._replace(targets=some))
    halves = [held.values[:, ::2], held.targets[:, ::2]]
    expected, _ = calibrated_bands(QUANTILES, Held(*halves, held.starts, held.series))
    np.testing.assert_allclose(factors[0], expected[0], rtol=0.05)
    np.testing.assert_array_equal(factors[1], 1)


def test_few_windows_widen_at_once_and_narrow_a_little():
    """Windows that overlap one and all: nothing is cross-fitted."""
    for factor, low, high in ((4.0, 2.0, 9.0), (0.25, 0.7, 0.99)):
        factors, told = calibrated_bands(QUANTILES, drawn(5, 12, (factor,)))
        assert low < factors[0, 0] < high
        assert "after" not in told
        line = in_words(told | {"factors": {"load": factors[0].tolist()}})
        assert line.endswith("before, too few to tell it after; 5 windows")


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The folder of two runs of a file that differ in --calibrate, and what the first prints."""
    folder = tmp_path_factory.mktemp("bands")
    file = hourly(folder / "load.csv", 301)
    options = arguments(**COLUMNS | SIZES, quantiles=QUANTILES, max_steps=5, held_out=0.3)
    options += ["--model", "qrnn", "--looks", 1, "--baselines", "false"]
    for name in ("true", "false"):
        out = folder / name / "run"
        lines = printed("forecasting", file, *options, "--calibrate", name, "--out", out)
        if name == "true":
            told = " ".join(" ".join(lines).split())
    return folder, told


def test_a_run_tells_what_its_factors_bring(both):
    folder, lines = both
    told = scores_of(folder / "true/run")["calibration"]
    [[below, above]] = told["factors"].values()
    before, after = (told[time]["coverage"] for time in ("before", "after"))
    assert f"times load {below:.2f}, {above:.2f}: the band of 80% holds {before:.1%}" in lines
    assert f"{after:.1%} lie in the band of 80%" in lines
    assert (folder / "true/run/calibration.png").stat().st_size > 3000
    card = (exported(folder / "true") / "README.md").read_text()
    assert f"| coverage | {before:.4f} | {after:.4f} |" in card
    assert "calibration" not in scores_of(folder / "false/run")
    assert not (folder / "false/run/calibration.png").exists()


def test_a_bundle_gives_the_bands_about_the_same_median(both):
    folder, _ = both
    [[below, above]] = scores_of(folder / "true/run")["calibration"]["factors"].values()
    assert below == above != 1
    rows = [line.split(",")[:-1] for line in (folder / "load.csv").read_text().splitlines()[1:]]
    known = [row[-2:] for row in rows[100:105]]
    given = {"series": tuple(rows[87:100]), "known": known}
    answer = serving.load(exported(folder / "true"), threads=1)(given)
    [other] = answers_of_run(folder / "false/run", [given])
    close(answer.values, other.values, 1e-5)
    for quantile in (0.1, 0.9):
        expected = other.values + below * (other.quantiles[quantile] - other.values)
        close(answer.quantiles[quantile], expected, 1e-4)


@pytest.mark.long
def test_a_training_that_begins_with_widened_bands_widens_them_further(both, tmp_path):
    folder, _ = both
    options = arguments(**COLUMNS | SIZES, quantiles=QUANTILES, max_steps=1, held_out=0.3)
    options += ["--model", "qrnn"]
    start = ["--start-from", folder / "true/run", "--baselines", "false", "--learning-rate", "1e-9"]
    printed("forecasting", folder / "load.csv", *options, *start, "--out", tmp_path / "run")
    factors = [
        keras.models.load_model(path / "run/model.keras", compile=False)
        .get_layer("bands")
        .factors.numpy()
        for path in (folder / "true", tmp_path)
    ]
    again = [*scores_of(tmp_path / "run")["calibration"]["factors"].values()]
    close(factors[1], factors[0] * np.array(again), 1e-5)


def test_one_quantile_is_no_band():
    values, targets = np.zeros((7, 5, 1)), np.ones((7, 5, 1))
    answers = [Forecasting(each, {0.7: each}, {}) for each in values]
    scores = forecast_scores(answers, targets, {}, ["load"], np.ones((7, 1)))
    assert scores["pinball"] == {"0.7": pytest.approx(0.7)} and "coverage" not in scores
    assert forecast_summary(scores) == "MAE is 1, MASE 1.000"

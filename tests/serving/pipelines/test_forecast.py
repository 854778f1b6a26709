import re

import numpy as np
import pytest

from seqkeras.serving import BundleError
from tests.serving.pipelines.toys import FORECAST as W
from tests.serving.pipelines.toys import forecaster as graph
from tests.serving.pipelines.toys import load


def series_of(*lengths, num_features=3):
    random = np.random.default_rng(1)
    return [random.normal(size=(length, num_features)).astype("float32") for length in lengths]


def expected(series):
    return (series.sum(axis=0) @ W[: series.shape[1]]).reshape(2, 4)


def test_series_of_many_lengths_are_answered_in_their_order(tmp_path):
    forecast = load(tmp_path, "Forecast", graph(), tokenizers={})
    series = series_of(5, 1, 31, 2, 17)
    for each, answer in zip(series, forecast(series, token_budget=20), strict=True):
        np.testing.assert_allclose(answer.values, expected(each), rtol=1e-4, atol=1e-5)
        assert answer.quantiles == {}
    np.testing.assert_allclose(forecast(series[2]).values, expected(series[2]), rtol=1e-4)
    assert forecast([]) == []


def test_one_feature_needs_no_axis(tmp_path):
    forecast = load(tmp_path, "Forecast", graph(num_features=1), tokenizers={})
    answers = forecast([(1, 2, 3.5), np.float64([6.5]), {"series": [[6.5]]}])
    for answer in answers:
        np.testing.assert_allclose(answer.values, 6.5 * W[0].reshape(2, 4), rtol=1e-5)


def test_quantiles_have_names_and_the_middle_one_is_the_value(tmp_path):
    settings = {"quantiles": [0.1, 0.6]}
    forecast = load(tmp_path, "Forecast", graph(quantiles=True), settings, tokenizers={})
    [series] = series_of(7)
    answer = forecast(series)
    values = expected(series).reshape(2, 2, 2)
    assert [*answer.quantiles] == [0.1, 0.6]
    np.testing.assert_allclose(answer.quantiles[0.1], values[..., 0], rtol=1e-4)
    np.testing.assert_allclose(answer.values, values[..., 1], rtol=1e-4)


def test_what_is_known_of_the_future_comes_in_a_dictionary(tmp_path):
    forecast = load(tmp_path, "Forecast", graph(known=True), tokenizers={})
    [series] = series_of(7)
    known = np.arange(8).reshape(2, 4)
    answer = forecast({"series": series, "known": known.tolist()})
    np.testing.assert_allclose(answer.values, expected(series) + known, rtol=1e-4)
    with pytest.raises(ValueError, match="^Forecast: series must be a dictionary of series and kn"):
        forecast(series)
    message = r"^Forecast: series, known must have shape \(2, 4\); received \(1, 4\)\.$"
    with pytest.raises(ValueError, match=message):
        forecast({"series": series, "known": known[:1]})


def test_old_values_are_forgotten_when_asked(tmp_path):
    [series] = series_of(33)
    answer = load(tmp_path, "Forecast", graph(), tokenizers={})(series, truncate=True)
    np.testing.assert_allclose(answer.values, expected(series[2:]), rtol=1e-4)


@pytest.mark.parametrize(
    "given, message",
    [
        ("1 2 3", "series must be numbers; received '1 2 3'."),
        (((10**400, 0, 0),), "series must be numbers; received tuple ((<1329 bits>, 0, 0),)."),
        (np.full((2, 3), np.nan), "series must be finite numbers in float32; received ndarray"),
        (np.full((2, 3), 1e300), "series must be finite numbers in float32; received ndarray"),
        (np.ones((2, 3), complex), "series must be numbers; received ndarray array([[1.+0.j"),
        (np.array([["1", "2", "3"]]), "series must be numbers; received ndarray array([['1'"),
        (np.zeros((0, 3)), "series must have shape (length, 3); received (0, 3). A list is severa"),
        (np.zeros(3), "series must have shape (length, 3); received (3,)."),
        (np.zeros((33, 3)), "series has 33 values; the limit is 31. Nothing was truncated: "),
        ({"series": np.ones((2, 3)), "known": 3}, "series must be a dictionary of series, which"),
        ([np.ones((1, 3)), 3.0], "series[1] must have shape (length, 3); received ()."),
    ],
)
def test_a_series_that_can_not_be_answered_is_refused(tmp_path, given, message):
    forecast = load(tmp_path, "Forecast", graph(), tokenizers={})
    with pytest.raises(ValueError, match=f"^Forecast: {re.escape(message)}"):
        forecast(given)


def test_wrong_settings_are_refused_with_every_reason(tmp_path):
    message = r"settings.quantiles is missing: the model's output \(batch, 2, 2, 2\) has a four"
    with pytest.raises(BundleError, match=message):
        load(tmp_path / "a", "Forecast", graph(quantiles=True), {}, tokenizers={})
    with pytest.raises(BundleError) as caught:
        load(tmp_path / "b", "Forecast", graph(), {"quantiles": [0.5, 0.2]}, tokenizers={})
    assert str(caught.value) == (
        f"{tmp_path}/b: manifest.json: the model's output must be (batch, horizon, targets, 2) to "
        "these settings; it is (batch, 2, 4); settings.quantiles must increase between 0 and 1; "
        "received 0.5, 0.2. Export the bundle again."
    )

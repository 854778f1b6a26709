import numpy as np
import pytest

from seqkeras.analysis import gradient_flow
from seqkeras.analysis.__main__ import main
from seqkeras.analysis.gradient_flow_figure import gradient_flow_figure
from tests.refusals import refusals

UNITS, STEPS = 11, 30


@pytest.fixture(scope="module")
def measurements():
    return gradient_flow.measure(UNITS, STEPS, seed=3)


@pytest.fixture(scope="module")
def figure(measurements):
    figure = gradient_flow_figure(measurements)
    figure.canvas.draw()
    return figure


def test_the_norms_are_powers_of_the_radius_and_tanh_only_takes_away(measurements):
    assert list(measurements.radii) == [0.9, 1.0, 1.1]
    for radius, each in measurements.radii.items():
        power = radius ** np.arange(STEPS + 1.0)
        np.testing.assert_allclose(each.closed, power, rtol=1e-9)
        np.testing.assert_allclose(each.looped, power, rtol=1e-9)
        assert np.all(each.tanh <= power * (1 + 1e-6))
        assert np.all(each.tanh[1:] < power[1:])


def test_the_norms_of_cells_start_at_one_and_an_lstm_keeps_most(measurements):
    cells = measurements.cells
    assert all(each.shape == (STEPS + 1,) and each[0] == 1 for each in cells.values())
    assert cells["SimpleRNN, h"][-1] < cells["LSTM, c"][-1] < cells["chrono LSTM, c"][-1]
    assert cells["chrono LSTM, c"][-1] > 0.1


def test_overflow_comes_when_float64_says(measurements):
    for dtype in ("float16", "float32"):
        each = measurements.overflows[dtype]
        # the same number of steps from 1 to the largest number, but for what h(0) and U add
        power = np.log(float(np.finfo(dtype).max)) / np.log(each.radius)
        assert power < each.expected < power + 15
        assert abs(each.infinite - each.expected) <= 1
        assert each.infinite < each.nan <= each.infinite + 3
        assert np.isfinite(each.largest[: each.infinite]).all()
    exact = measurements.overflows["float64"]
    assert (exact.expected, exact.infinite, exact.nan) == (None, None, None)


def test_the_command_prints_its_figures_and_draws_them(tmp_path, capsys):
    path = tmp_path / "flow.png"
    arguments = ["--out", str(path), "--units", "5", "--steps", "20", "--seed", "1"]
    assert main(["gradient-flow", *arguments, "--radii", "0.5,2"]) == 0
    *table, told, last = capsys.readouterr().out.splitlines()
    assert last == f"{path}: drawn" and told.startswith("20 steps back a gradient is ")
    expected = gradient_flow.measure(5, 20, 1).cells["SimpleRNN, h"]
    row = next(line for line in table if line.startswith("SimpleRNN, h"))
    assert row.split()[2:] == [f"{expected[n]:.2g}" for n in (1, 2, 10, 20)]
    assert any(line.startswith("float16") for line in table)
    radii = {line.split(",")[0] for line in table if ", SimpleRNN" in line}
    assert radii == {"radius 0.5", "radius 2"}
    assert path.stat().st_size < 500_000


POWER = "radii must be positive numbers whose power 4 is below 1e300; received"
test_radii_that_can_not_be_are_refused = refusals(
    (lambda: gradient_flow.measure(3, 4, radii=(1, 0)), f"{POWER} 0."),
    (lambda: gradient_flow.measure(3, 4, radii=(1e80,)), f"{POWER} 1e+80"),
    (lambda: gradient_flow.measure(3, 4, radii=(1,) * 50), "must be from 1 to ... received 50."),
)

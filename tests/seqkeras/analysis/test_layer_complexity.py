"""The table of layers, computed from graphs and gradients = the formulas of the paper."""

import math

import numpy as np
import pytest
from matplotlib.image import imread

from seqkeras.analysis import layer_complexity
from seqkeras.analysis.layer_complexity import KERNEL, WIDTH, WINDOW, dependence, kinds, measure
from tests.arrays import close

LENGTHS = (8, 16, 32)
n, d, r, k = 32, WIDTH, WINDOW, KERNEL
EXPECTED = {  # multiply-adds, sequential, path; powers of n and d
    "self-attention": (4 * n * d * d + 2 * n * n * d, 4, lambda n: 1, (2, 1)),
    "recurrent": (2 * n * d * d, 1 + n, lambda n: n, (1, 2)),
    "convolution": (k * n * d * d, 1, lambda n: math.ceil((n - 1) / (k - 1)), (1, 2)),
    "dilated convolution": (k * n * d * d, 1, lambda n: math.ceil(math.log(n, k)), (1, 2)),
    "restricted attention": (
        4 * n * d * d + 2 * n * 3 * r * d,
        4,
        lambda n: math.ceil((n - 1) / r),
        (1, 1),
    ),
}


@pytest.fixture(scope="module")
def rows():
    return measure(LENGTHS)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_layer_has_the_complexity_and_the_path_of_the_paper(name, rows):
    multiply_adds, sequential, path, powers = EXPECTED[name]
    row = rows[name]
    assert row.multiply_adds[n] == multiply_adds and row.sequential[n] == sequential
    assert row.path == {length: path(length) for length in LENGTHS}
    close([row.power_of_length, row.power_of_width], powers, atol=0.05)


def test_every_kind_of_the_table_is_expected():
    assert kinds().keys() == EXPECTED.keys()


def test_an_output_depends_on_the_inputs_within_the_window():
    layer = kinds()["restricted attention"].make(WIDTH, 2, 0)
    places = np.arange(11)
    expected = np.abs(places[:, None] - places) <= 2
    np.testing.assert_array_equal(dependence(layer, 11), expected)


def test_the_command_prints_the_table_and_draws(tmp_path, capsys, monkeypatch, rows):
    monkeypatch.setattr(layer_complexity, "measure", lambda: rows)
    assert layer_complexity.main(["--out", str(tmp_path / "table.png")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[:6] == ["recurrent", "n", "d²", "n^1.00", "d^2.00", "n"]
    assert imread(tmp_path / "table.png").shape[:2] == (528, 1440)


def test_a_folder_that_is_missing_is_refused_before_anything_is_measured(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        layer_complexity.main(["--out", str(tmp_path / "none" / "table.png")])
    assert "the folder of path must exist" in capsys.readouterr().err

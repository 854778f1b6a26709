"""The table of layers, computed from graphs and gradients = the formulas of the paper."""

import math

import numpy as np
import pytest

from seqkeras.analysis.layer_complexity import (
    KERNEL,
    WIDTH,
    WINDOW,
    dependence,
    kinds,
    measure,
    table_of,
)
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


def test_the_table_has_the_papers_entries_beside_those_computed(rows):
    assert table_of(rows)[2] == [
        *("recurrent", "n d²", "n^1.00 d^2.00", "n", "9, 17, 33", "n", "8, 16, 32"),
    ]

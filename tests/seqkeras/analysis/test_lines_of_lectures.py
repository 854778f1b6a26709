"""The numbers of the figures of tanh, power iteration and positions = loops of the formulas."""

import math

import numpy as np

from seqkeras.analysis import position_waves, power_iteration, tanh_composition
from tests.arrays import close


def test_a_composition_is_tanh_of_tanh():
    s, actual = tanh_composition.composed(units=7, gain=2.0, seed=3)
    random = np.random.default_rng(3)
    a, b = (line / np.sqrt(sum(line**2)) for line in random.normal(size=(2, 7)))
    kernel = 2.0 / np.sqrt(7) * random.normal(size=(7, 7))
    for place in (0, 400, 1999):
        h = s[place] * a
        for t in range(9):
            if t in actual:
                close(actual[t][place], sum(b * h), atol=1e-4)
            h = np.array([math.tanh(sum(h[i] * kernel[i, j] for i in range(7))) for j in range(7)])


def test_turns_are_counted():
    assert tanh_composition.turns(np.array([0, 1, 2, 1, 0, 3])) == 2
    assert tanh_composition.turns(np.arange(5)) == 0


def test_a_share_falls_as_the_power_of_its_eigenvalue():
    shares, eigenvalues = power_iteration.shares(units=7, steps=11, seed=3)
    for t, share in enumerate(shares):
        parts = [abs(eigenvalue) ** t for eigenvalue in eigenvalues]
        length = math.sqrt(sum(part**2 for part in parts))
        close(share, np.array(parts) / length, atol=1e-9)


def test_directions_end_along_the_largest_eigenvector():
    paths = power_iteration.directions(steps=99)
    close(np.abs(paths[-1]), np.tile([1.0, 0.0], (power_iteration.STARTS, 1)), atol=1e-3)


def test_products_of_positions_are_sums_of_cosines_of_their_distance():
    for vectors in position_waves.position_vectors(length=13, dim=10).values():
        distances, products = position_waves.products(vectors)
        for k, product in zip(distances, products):
            expected = sum(math.cos(k / 10000 ** (2 * i / 10)) for i in range(5)) / 5
            close(product, expected, atol=1e-5)
            if k > -6:
                close(vectors[6] @ vectors[6 + k], vectors[5] @ vectors[5 + k], atol=1e-4)

"""Cells by groups against the whole hypercube, the reflection, pair search, and the counting against itself."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

from xorlib import data, invariance


@pytest.mark.parametrize(("num", "dimension"), [(0, 5), (1, 8), (2, 9), (4, 8)])
def test_cells_are_those_of_the_whole_hypercube(num, dimension):
    x = data.random_signs(num, dimension, np.random.default_rng(num))
    found = invariance.cells(x)
    cube = data.hypercube(dimension)
    key = np.unique(cube @ x.T, axis=0, return_inverse=True)[1] if num else np.zeros(len(cube), dtype=int)
    expected = []
    for k in range(key.max() + 1):
        q = cube[key == k]
        rarer = np.array([(1 - abs((q[:, i] * q[:, j]).mean())) / 2 for i, j in combinations(range(dimension), 2)])
        expected.append((len(q) / 2**dimension, rarer.mean(), np.mean(rarer >= 0.15 - 1e-12)))
    rows = np.round(np.stack([found.mass, found.minority, found.contested], axis=1), 12)
    assert sorted(map(tuple, rows)) == sorted(map(tuple, np.round(expected, 12)))
    assert found.lower_bound() == pytest.approx(sum(mass * rarer for mass, rarer, _ in expected))


def test_too_many_states_are_refused():
    with pytest.raises(ValueError, match="states"):
        invariance.cells(data.random_signs(9, 60, np.random.default_rng(0)))


def test_swap_fixes_training_points_and_exchanges_lookalikes():
    rng = np.random.default_rng(5)
    x_train, x = data.random_signs(3, 12, rng), data.random_signs(1, 12, rng)[0]
    alike = invariance.lookalikes(x_train, x)
    assert len(alike) > 1 and np.all(alike @ x_train.T == x_train @ x)
    q = next(point for point in alike if np.any(point != x))
    rotation = invariance.swap(x, q)
    assert np.allclose(rotation @ rotation.T, np.eye(12))
    assert np.allclose(rotation @ x, q) and np.allclose(x_train @ rotation, x_train)


def test_pair_search_finds_every_pair_that_fits_and_no_other():
    rng = np.random.default_rng(6)
    x = data.random_signs(5, 9, rng)
    y = -x[:, 2] * x[:, 7]
    fits = [pair for pair in combinations(range(9), 2) if np.all(-x[:, pair[0]] * x[:, pair[1]] == y)]
    assert [tuple(pair) for pair in invariance.consistent_pairs(x, y)] == fits and (2, 7) in fits


def test_counted_constant_is_the_count_of_agreeing_points():
    """In dimension 41 most points agree with a pattern on 0.8 of 31 coordinates or more; count the sets one by one."""
    largest = max(2 * 2 ** (40 - size) * sum(comb(size, k) for k in range(size + 1) if 10 * k >= 8 * size)
                  for size in range(31, 41))  # fmt: skip
    assert invariance.counted_constant(41) == pytest.approx(1 - np.log2(10 * largest) / 41, abs=1e-12)
    assert invariance.counted_constant(2000) == pytest.approx(0.2093, abs=1e-3)
    # The limit of the count's exponent: 1 - entropy of 0.2, on three quarters of the coordinates.
    assert 0.75 * (1 + 0.2 * np.log2(0.2) + 0.8 * np.log2(0.8)) == pytest.approx(0.2086, abs=1e-3)
    assert invariance.counted_bound(100, 100) == 0.0 and 0.03 < invariance.counted_bound(1000, 20) <= 0.0375

"""Formulas against independent counts."""

import numpy as np
import pytest

from xorlib import data, measure, network, theory


def test_cross_error_against_simulation():
    rng = data.streams(0)
    fresh = data.xor_clusters(400_000, 3, 0.25, 0.0, rng.data, rng.noise)
    net = network.four_neuron_net(np.eye(2, 3))
    assert np.mean(np.sign(net(fresh.x)) != fresh.y) == pytest.approx(theory.cross_error(0.25), rel=0.02)


def test_boundary_angles_of_a_tilted_cross():
    tilt = np.radians(10)
    turned = network.four_neuron_net(np.array([[np.cos(tilt), np.sin(tilt)], [-np.sin(tilt), np.cos(tilt)]]))
    assert sorted(measure.boundary_angles(turned)) == pytest.approx([55, 145, 235, 325])


def test_clean_and_noisy_counts():
    sample = data.Sample(np.zeros((4, 1)), np.array([1, 1, -1, -1.0]), np.array([1, -1, -1, -1.0]), np.arange(4))
    assert measure.clean_and_noisy(np.array([2.0, 2.0, -1.0, 1.0]), sample) == pytest.approx((2 / 3, 0.0))


def test_one_constant_for_all_assumptions():
    literal = theory.Setting(400, 500, 100, 0.15**2 / 500, 0.15, 0.0225**2 / (100 * 500), 0.25, delta=0.1)
    low, high = theory.common_constant(literal)
    assert (low, high) == pytest.approx((4, 1 / 0.15))
    # The same by the inequalities as the paper writes them, at a constant inside and two outside.
    for constant, holds in ((5.0, True), (3.9, False), (6.7, False)):
        n, d, m, delta = 400, 500, 100, 0.1
        checks = (
            d >= constant * max(np.log(n / delta) ** 2, np.log(m / delta)),
            0.15**2 / 500 <= 1 / (constant**2 * d),
            n >= constant * np.log(m / delta),
            0.15 <= 1 / constant,
            m >= constant * np.log(1 / delta),
            0.0225**2 / (100 * 500) <= 1 / (constant**4 * m * d),
            1 / (2 * np.sqrt(constant)) <= 0.25 <= 1 / np.sqrt(constant),
        )
        assert all(checks) is holds


def test_the_stopping_time_is_not_lost_to_rounding():
    assert [theory.theorem_steps(a) for a in (0.05, 0.25, 0.1, 1 / 12, 0.5)] == [6, 2, 3, 4, 1]


def test_rotating_net_and_inputs_changes_nothing_and_odd_width_idles():
    net = network.both_layers(7, 4, 0.3, np.random.default_rng(0))
    assert np.linalg.norm(net.weights, axis=1) == pytest.approx(0.3)
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    x = np.random.default_rng(2).standard_normal((9, 4))
    np.testing.assert_allclose(net.rotate(rotation)(x @ rotation.T), net(x), atol=1e-14)
    np.testing.assert_allclose(network.fixed_signs(5) * np.sqrt(5), [1, 1, -1, -1, 0])

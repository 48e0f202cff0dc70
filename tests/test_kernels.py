"""Kernels against integrals over neurons, curves against separate fits, tuning against the choices it had."""

import numpy as np
import pytest

from xorlib import data, kernels


def _sample(num, dimension, seed, noise_rate=0.0):
    rng = np.random.default_rng(seed)
    return data.xor_clusters(num, dimension, 0.05, noise_rate, rng, rng)


def test_tangent_kernels_are_the_averages_over_neurons():
    """In the plane of two points a Gaussian neuron has a uniform angle and a squared length of mean 2."""
    angles = (np.arange(400_000) + 0.5) / 400_000 * 2 * np.pi
    neurons = np.stack([np.cos(angles), np.sin(angles)])
    x, z = np.array([[1.3, -0.4], [0.2, 2.0]]), np.array([[0.7, 0.6], [-1.3, 0.4], [1.3, -0.4]])
    pre_x, pre_z = x @ neurons, z @ neurons
    first = ((pre_x > 0) * 1.0) @ (pre_z > 0).T / len(angles) * (x @ z.T)
    second = 2 * np.maximum(pre_x, 0) @ np.maximum(pre_z, 0).T / len(angles)
    # Rotated into five dimensions nothing changes.
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 2)))[0].T
    assert np.allclose(kernels.ntk_first_layer(x @ basis, z @ basis), first, atol=1e-5)
    assert np.allclose(kernels.ntk_both_layers(x @ basis, z @ basis), first + second, atol=1e-5)


def test_random_features_tend_to_their_mean():
    x, z = _sample(6, 4, 1).x, _sample(5, 4, 2).x
    mean = kernels.ntk_both_layers(x, z) - kernels.ntk_first_layer(x, z)
    close = kernels.random_features(200_000, 4, np.random.default_rng(0))
    assert np.allclose(close(x, z), mean, atol=0.03)
    assert np.array_equal(close(x, x), close(x, x.copy()))


def test_dot_product_and_laplace_kernels_by_hand():
    x, z = np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]])
    assert kernels.quadratic(x, z)[0, 0] == pytest.approx(2.25)
    assert kernels.exponential(x, z)[0, 0] == pytest.approx(np.exp(0.5))
    assert kernels.laplace(2.0)(x, z)[0, 0] == pytest.approx(np.exp(-np.sqrt(13) / 2))


@pytest.mark.parametrize("kernel", [kernels.ntk_both_layers, kernels.quadratic, kernels.laplace(3.0)])
def test_learning_curves_are_one_fit_a_size(kernel):
    train, test = data.boolean_xor(60, 8, np.random.default_rng(3)), data.boolean_xor(100, 8, np.random.default_rng(4))
    other, ridges = data.boolean_xor(30, 8, np.random.default_rng(5)), (1e-3, 1.0)
    curves = kernels.learning_curves(kernel, train, (test, other), ridges)
    for size in (1, 17, 60):
        part = data.Sample(train.x[:size], train.y[:size], train.clean_y[:size], train.cluster[:size])
        for i, ridge in enumerate(ridges):
            fit = kernels.ridge_regression(kernel, part, ridge)
            for j, fresh in enumerate((test, other)):
                assert curves[i, j, size - 1] == pytest.approx(np.mean(np.sign(fit(fresh.x)) == fresh.clean_y))


def test_ridge_regression_solves_the_normal_equations():
    train = _sample(30, 6, 5, 0.2)
    fit = kernels.ridge_regression(kernels.ntk_first_layer, train, 0.1)
    gram = kernels.ntk_first_layer(train.x, train.x)
    assert np.allclose(fit(train.x) + 0.1 * np.trace(gram) / 30 * fit.coefficients, train.y, atol=1e-10)


def test_tuning_takes_the_best_ridge_on_validation():
    train, validation = _sample(80, 10, 6, 0.2), _sample(400, 10, 7, 0.2)
    ridges = (1e-6, 1e-2, 10.0, 1e6)
    tuned = kernels.tuned_ridge(kernels.ntk_first_layer, train, validation, ridges)
    shares = [np.mean(np.sign(kernels.ridge_regression(kernels.ntk_first_layer, train, r)(validation.x))
                      == validation.y) for r in ridges]  # fmt: skip
    assert np.mean(np.sign(tuned(validation.x)) == validation.y) == max(shares) > min(shares)


def test_linear_classifiers_learn_what_is_linear():
    rng = np.random.default_rng(8)
    x = rng.standard_normal((200, 5))
    y = np.sign(x @ np.arange(1.0, 6.0))
    for name, weights in kernels.linear_classifiers(data.Sample(x, y, y, np.zeros(200, int))).items():
        assert np.mean(np.sign(x @ weights) == y) > 0.95, name

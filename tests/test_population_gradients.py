"""FTT's exact gradients and closed forms, each against an independent way."""

import numpy as np
import pytest
import torch
from scipy import stats

from xorlib import data, network, population, theory


def _net(seed, width=7, dimension=6, signs_only=False):
    rng = np.random.default_rng(seed)
    net = network.both_layers(width, dimension, 0.7, rng)
    second = net.second_layer if signs_only else rng.standard_normal(width)
    return network.Network(net.weights, second, net.scale)


@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_those_of_autograd(seed):
    net, x = _net(seed), np.random.default_rng(seed).standard_normal((40, 6))
    y = np.sign(x[:, 0])
    w, a = (torch.tensor(v, requires_grad=True) for v in (net.weights, net.second_layer))
    output = torch.relu(torch.tensor(x) @ w.T) @ a / net.width
    (-2 * torch.nn.functional.logsigmoid(torch.tensor(y) * output)).mean().backward()
    got = theory.gradients(net, x, theory.loss_derivative(net, x, y))
    np.testing.assert_allclose(got.weights, net.width * w.grad.numpy(), atol=1e-13)
    np.testing.assert_allclose(got.second_layer, net.width * a.grad.numpy(), atol=1e-13)


def test_population_kinds_differ_as_they_should():
    net = _net(4)
    x = data.hypercube(6)
    y = -x[:, 0] * x[:, 1]
    points = {"points": x[::-1]}
    for kind, derivative in (("loss", -2 * y / (1 + np.exp(y * net(x)))), ("zero", -y),
                             ("clean", -2 * y / (1 + np.exp(y * net(x * ([1, 1] + [0] * 4)))))):  # fmt: skip
        got = theory.population_gradients(net, kind, **points)
        np.testing.assert_allclose(got.weights, theory.gradients(net, x, derivative).weights, atol=1e-14)
    with pytest.raises(ValueError, match="unknown"):
        theory.population_gradients(net, "other")


@pytest.mark.parametrize("length", [1, 2, 7, 11])
def test_signed_sum_is_the_full_enumeration(length):
    rng = np.random.default_rng(length)
    u = rng.standard_normal(length)
    every = data.hypercube(length) @ u
    exact = theory.SignedSum(u)
    for low, high in rng.uniform(-3, 3, (20, 2)):
        assert exact.between(low, high) == pytest.approx(np.mean((every >= low) & (every <= high)), abs=1e-15)
    with pytest.raises(ValueError, match="too long"):
        theory.SignedSum(np.ones(45))


def test_plane_gradient_is_the_enumerated_one_and_its_approximations_are_what_they_say():
    net = _net(5, dimension=9)
    exact = theory.population_gradients(net, "zero").weights[:, :2]
    np.testing.assert_allclose(theory.signal_plane_gradient(net), exact, atol=1e-14)
    z = np.array([[1.0, -1], [-1, 1], [1, 1], [-1, -1]])
    spread = np.linalg.norm(net.weights[:, 2:], axis=1)
    active = stats.norm.cdf((net.weights[:, :2] @ z.T) / spread[:, None])  # of relu' when w.xi is Gaussian
    expected = -0.25 * net.second_layer[:, None] * ((active * [1, 1, -1, -1]) @ z)
    np.testing.assert_allclose(theory.signal_plane_gradient(net, "gaussian"), expected, atol=1e-14)
    neurons, rate = population.summarise(net), 1 / np.sqrt(2 * np.pi)
    toward = neurons.signal * rate * np.abs(net.second_layer) / np.linalg.norm(net.weights, axis=1)
    mean = np.where(net.second_layer[:, None] >= 0, [1, -1], [1, 1]) / np.sqrt(2)
    linear = theory.signal_plane_gradient(net, "linear")
    np.testing.assert_allclose((linear * mean).sum(axis=1), -toward, atol=1e-14)  # (4.5), along w_sig
    with pytest.raises(ValueError, match="unknown"):
        theory.signal_plane_gradient(net, "cubic")


@pytest.mark.parametrize("seed", range(3))
def test_lemma_c4_is_an_identity(seed):
    net = _net(seed, width=20, dimension=8)
    gradient = theory.population_gradients(net, "zero").weights
    mu1, mu2 = np.eye(8)[0] - np.eye(8)[1], np.eye(8)[0] + np.eye(8)[1]
    positive = net.second_layer[:, None] >= 0
    signal, opposite = np.where(positive, mu1, mu2), np.where(positive, mu2, mu1)
    sides = theory.zero_output_products(net)
    for direction, side in ((signal, sides[0]), (opposite, sides[1])):
        part = 0.5 * (net.weights * direction).sum(axis=1, keepdims=True) * direction
        np.testing.assert_allclose(-(part * gradient).sum(axis=1), side, atol=1e-14)
    np.testing.assert_allclose(-(net.weights * gradient)[:, 2:].sum(axis=1), sides[2], atol=1e-14)
    np.testing.assert_allclose(-(net.weights * gradient)[:, 2:], sides[3], atol=1e-14)

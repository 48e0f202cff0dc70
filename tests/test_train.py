"""Gradient descent against autograd, the Gram form against the plain one, the schedule against fixed steps."""

import numpy as np
import pytest
import torch

from xorlib import data, network, train


def problem(num, dimension, width, seed=3):
    rng = data.streams(seed)
    cloud = dict(dimension=dimension, cluster_variance=1 / dimension, noise_rate=0.15)
    points = data.xor_clusters(num, rng=rng.data, noise_rng=rng.noise, **cloud)
    fresh = data.xor_clusters(50, rng=rng.test, noise_rng=rng.test, **cloud)
    return points, fresh, network.fixed_second_layer(width, dimension, 0.01 / (width * dimension), rng.init)


def autograd(net, points, step_size, num_steps):
    """What a user would write: the loss, backward, SGD on the first layer."""
    x, y = torch.tensor(points.x), torch.tensor(points.y)
    weights = torch.tensor(net.weights, requires_grad=True)
    a = torch.tensor(net.second_layer)
    optimiser = torch.optim.SGD([weights], lr=step_size)
    for _ in range(num_steps):
        optimiser.zero_grad()
        torch.nn.functional.softplus(-y * (torch.relu(x @ weights.T) @ a)).mean().backward()
        optimiser.step()
    return weights.detach().numpy()


@pytest.mark.parametrize(("num", "dimension", "width"), [(300, 2, 250), (90, 40, 24), (40, 300, 31)])
@pytest.mark.parametrize("form", ["plain", "gram"])
def test_both_forms_are_gradient_descent(num, dimension, width, form):
    points, fresh, net = problem(num, dimension, width)
    run = train.gradient_descent(
        net, points, step_size=0.5, num_steps=200, form=form, test_x=fresh.x, record_at=[200],
        record=lambda state: {"train": state.train_output, "test": state.test_output, "net": state.network},
    )  # fmt: skip
    expected = network.Network(autograd(net, points, 0.5, 200), net.second_layer)
    row = run.history.iloc[0]
    np.testing.assert_allclose(run.network.weights, expected.weights, atol=1e-10)
    np.testing.assert_allclose(row["net"].weights, expected.weights, atol=1e-10)
    np.testing.assert_allclose(row["train"], expected(points.x), atol=1e-10)
    np.testing.assert_allclose(row["test"], expected(fresh.x), atol=1e-10)
    assert np.abs(row["train"]).max() > 0.1  # it has learnt something, so the comparison means something


def test_the_gram_form_is_chosen_by_itself_when_d_exceeds_n():
    for num, dimension, cls in ((40, 60, train._Gram), (60, 40, train._Plain)):
        points, _, net = problem(num, dimension, 10)
        picked = []
        original = cls.step
        cls.step = lambda self, size, original=original, picked=picked: (picked.append(1), original(self, size))
        try:
            train.gradient_descent(net, points, step_size=0.1, num_steps=3)
        finally:
            cls.step = original
        assert len(picked) == 3


def test_recording_does_not_disturb_and_growing_steps_land_on_the_recorded_ones():
    points, _, net = problem(60, 5, 20)
    often = train.gradient_descent(net, points, step_size=0.1, num_steps=50, record_at=range(51))
    once = train.gradient_descent(net, points, step_size=0.1, num_steps=50)
    assert np.array_equal(often.network.weights, once.network.weights)
    assert list(often.history.step) == list(range(51))
    grown = train.gradient_descent(net, points, step_size=0.01, num_steps=5000, growth=0.02, record_at=[0, 777, 5000])
    fixed = train.gradient_descent(net, points, step_size=0.01, num_steps=5000, record_at=[0, 777, 5000])
    assert list(grown.history.step) == [0, 777, 5000]
    assert grown.num_updates < fixed.num_updates / 10
    np.testing.assert_allclose(grown.history.loss, fixed.history.loss, rtol=0.05)


def test_subgradient_reaches_the_kink():
    net = network.Network(np.zeros((2, 2)), network.fixed_signs(2))
    points = data.Sample(np.eye(2), np.array([1.0, 1.0]), np.array([1.0, 1.0]), np.array([0, 2]))
    moved = {
        kink: train.gradient_descent(
            net, points, step_size=1.0, num_steps=1, subgradient=kink, form=form).network.weights
        for kink, form in ((0.0, "plain"), (1.0, "plain"), (0.5, "gram"))
    }
    assert np.all(moved[0.0] == 0)
    np.testing.assert_allclose(moved[0.5], moved[1.0] / 2)
    assert np.abs(moved[1.0]).max() > 0.1


def test_float32_is_offered_and_divergence_is_named():
    points, _, net = problem(60, 5, 20)
    single = train.gradient_descent(net, points, step_size=0.1, num_steps=20, dtype="float32").network.weights
    double = train.gradient_descent(net, points, step_size=0.1, num_steps=20).network.weights
    assert 0 < np.abs(single - double).max() < 1e-5
    huge = network.Network(np.full_like(net.weights, 1e308), net.second_layer)
    with pytest.raises(FloatingPointError, match=r"diverged by step 1: step_size = 0\.1 is too large for width 20"):
        train.gradient_descent(huge, points, step_size=0.1, num_steps=1, record_at=[1])
    with pytest.raises(ValueError, match="form = 'fast'"):
        train.gradient_descent(net, points, step_size=0.1, num_steps=1, form="fast")

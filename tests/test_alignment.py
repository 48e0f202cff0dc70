"""RFA's conditions, edges and first step, each against a second way to compute it."""

import numpy as np
import pytest

from xorlib import data, measure, network, theory, train


@pytest.fixture
def case():
    rng = data.streams(3)
    sample = data.xor_clusters(300, 40, 0.3**2 / 40, 0.2, rng.data, rng.noise)
    return sample, network.fixed_second_layer(20, 40, 1e-4, rng.init), data.xor_means(40)


def test_alignment_and_edges_agree_with_plain_loops(case):
    sample, net, means = case
    net = train.gradient_descent(net, sample, step_size=0.3, num_steps=1).network
    aligned, edges = measure.aligned(net, sample), measure.activation_edge(net, sample)
    assert 0 < aligned.sum() < aligned.size / 2
    for j in range(net.width):
        for c, mean in enumerate(means):
            opposite = int(np.argmin(means @ mean))
            on = [net.weights[j] @ x > 0 for x in sample.x]
            mine = [o for o, k in zip(on, sample.cluster, strict=True) if k == c]
            theirs = [o for o, k in zip(on, sample.cluster, strict=True) if k == opposite]
            assert aligned[j, c] == (all(mine) and not any(theirs))
            clean = [(o, k) for o, k, noisy in zip(on, sample.cluster, sample.noisy, strict=True) if not noisy]
            edge = sum(o for o, k in clean if k == c) - sum(o for o, k in clean if k == opposite)
            assert edges[j, c] == pytest.approx(edge / 300)


def test_orthogonality_looks_at_the_other_class_only(case):
    _, net, means = case
    weights = np.zeros((20, 40))
    weights[0, :2], weights[19, :2] = [9.0, 0.5], [0.25, 9.0]  # a positive and a negative neuron
    net = network.Network(weights, net.second_layer)
    sets = np.zeros((20, 4), dtype=bool)
    assert measure.orthogonality(net, means, sets, 0.1) == 0
    sets[0, 0] = sets[19, 3] = True
    assert measure.orthogonality(net, means, sets, 0.1) == pytest.approx(0.5 / (0.1 / np.sqrt(20)))


def test_parts_of_the_first_step_add_up_to_gradient_descent(case):
    sample, net, means = case
    after = train.gradient_descent(net, sample, step_size=0.7, num_steps=1).network
    along, spread, output = theory.first_step(net, sample, means, 0.7)
    assert np.allclose(along + spread + output, after.weights - net.weights, atol=1e-14)
    assert np.abs(along[:, 2:]).max() == 0 < np.abs(spread).max()


def test_expected_edge_is_the_mean_of_measured_edges():
    rng, sigma = data.streams(0), 0.2
    sample = data.xor_clusters(200_000, 3, sigma**2, 0.1, rng.data, rng.noise)
    weights = np.random.default_rng(1).standard_normal((8, 3))
    net = network.Network(weights, network.fixed_signs(8))
    cosines = measure.correlations(net, data.xor_means(3))
    difference = measure.activation_edge(net, sample) - theory.expected_edge(cosines, sigma**2, 0.1)
    assert np.abs(difference).max() < 0.005


def test_a_good_run_breaks_where_it_should(case):
    sample, net, means = case
    sizes = {"cluster_variance": 0.3**2 / 40, "noise_rate": 0.2, "init_variance": 1e-4, "delta": 0.1}
    held = measure.good_run(net, sample, means, C0=4, C1=3.0, C2=50, **sizes)
    assert held["norms"] and held["count"] and held["data"]
    constants = measure.concentration_constants(sample, means, 0.3**2 / 40, 0.2, 0.1)
    noise = sample.x - means[sample.cluster]
    assert constants["b"] == pytest.approx(max(z @ z for z in noise) / 0.09)
    assert not measure.good_run(net, sample, means, C0=4, C1=0.9 * max(constants.values()), **sizes)["data"]
    long = network.Network(4 * net.weights, net.second_layer)
    assert not measure.good_run(long, sample, means, C0=4, **sizes)["norms"]
    crossed = network.Network(np.abs(net.weights), net.second_layer)  # no neuron leans to -mu1 or -mu2
    assert not measure.good_run(crossed, sample, means, C0=4, **sizes)["sets"]

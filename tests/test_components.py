"""FTT's measures: parts of a neuron, margins, signal-heaviness and clean rates, each against an independent way."""

import numpy as np
import pytest

from xorlib import data, measure, network

MEANS = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0]])


@pytest.fixture
def net():
    start = network.both_layers(60, 8, 1.0, np.random.default_rng(3))
    return network.Network(start.weights * np.array([9.0, 9.0] + [0.3] * 6), start.second_layer * 3, start.scale)


def test_margins_are_outputs_at_the_means(net):
    points = np.hstack([MEANS, np.zeros((4, 6))])
    np.testing.assert_allclose(measure.cluster_margins(net), data.CLUSTER_LABELS * net(points), rtol=1e-12)
    slopes = 1e-5 * np.array([1, -1])
    finite = np.diff(2 * np.logaddexp(0, -(measure.cluster_margins(net) + slopes[:, None])), axis=0)[0] / 2e-5
    np.testing.assert_allclose(measure.loss_slopes(measure.cluster_margins(net)), finite, rtol=1e-5)


@pytest.mark.parametrize("factor", [1.0, 5.0])
def test_zeta_is_the_smallest_that_satisfies_the_definition(net, factor):
    def holds(zeta):
        own = np.where(net.second_layer[:, None] >= 0, MEANS[0], MEANS[2]) / np.sqrt(2)
        other = np.where(net.second_layer[:, None] >= 0, MEANS[2], MEANS[0]) / np.sqrt(2)
        sig, opp = ((net.weights[:, :2] * v).sum(1) for v in (own, other))
        heavy = factor * np.linalg.norm(net.weights[:, 2:], axis=1) + abs(opp) <= zeta * abs(sig)
        margins = []
        for mean, label in zip(MEANS, data.CLUSTER_LABELS, strict=True):
            points = heavy & (net.second_layer * label > 0) & (sig[:, None] * own @ mean > 0)
            margins.append(np.mean(points * abs(net.second_layer) * np.maximum(sig[:, None] * own @ mean, 0)))
        squares, a_squares = (net.weights**2).sum(1), net.second_layer**2
        light = np.mean(~heavy * squares) <= zeta * min(margins)
        return light and squares.mean() <= a_squares.mean() + zeta * max(1, a_squares.mean())

    zeta = measure.signal_heaviness(net, factor).zeta
    assert holds(zeta * (1 + 1e-9)) and not holds(zeta * (1 - 1e-9))


def test_clean_rates_are_the_clean_gradient(net):
    slopes = np.array([0.3, 1.1, 0.7, 1.9])
    sample = data.boolean_sample(data.hypercube(8))
    derivative = -sample.y * slopes[sample.cluster]
    active = sample.x @ net.weights.T > 0
    gradient = net.second_layer[:, None] * ((active * derivative[:, None]).T @ sample.x) / len(sample)
    rates = measure.clean_rates(net, data.hypercube(6), slopes)
    perp = (gradient[:, 2:] * net.weights[:, 2:]).sum(1) / abs(net.second_layer)
    np.testing.assert_allclose(rates["perp"], perp, rtol=0, atol=1e-12)
    first = np.where(net.second_layer[:, None] >= 0, MEANS[0], MEANS[2]) / 2
    sig = (gradient[:, :2] * first * (net.weights[:, :2] @ MEANS.T)[:, [0, 2]][
        range(60), np.where(net.second_layer >= 0, 0, 1)][:, None]).sum(1) / abs(net.second_layer)  # fmt: skip
    np.testing.assert_allclose(rates["sig"], sig, rtol=0, atol=1e-12)
    total = (gradient * net.weights).sum(1) / abs(net.second_layer)
    np.testing.assert_allclose(rates["sig"] + rates["opp"] + rates["perp"], total, rtol=0, atol=1e-12)
    second = (np.maximum(sample.x @ net.weights.T, 0) * derivative[:, None]).mean(0)
    np.testing.assert_allclose(rates["second"], second, rtol=0, atol=1e-12)


def test_strong_neurons_at_the_start():
    start = network.both_layers(500, 100, 0.1, np.random.default_rng(0))
    phase = measure.PhaseOne(100, 500, 0.1)
    classes = phase.classes(start, start, 0)
    assert classes["controlled"].mean() > 0.99 and not classes["weakly_controlled"].any()
    expected = abs(measure.components(start).sig) >= 0.1 / np.sqrt(100)
    np.testing.assert_array_equal(classes["strong"], expected & classes["controlled"])
    end = phase.first_stage()
    assert phase.largest_signal(end) <= phase.zeta**2 < phase.largest_signal(end + 1)

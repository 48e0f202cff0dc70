"""The closed-form dynamics against numerical integrals, the initial law, and the noise against its definition."""

import numpy as np
import pytest
from scipy import integrate, stats

from xorlib import network, population


def _neurons(seed=0, width=6):
    rng = np.random.default_rng(seed)
    n = population.initial(width, 30, 0.7, rng)
    return population.Neurons(3 * n.mu1, 2 * n.mu2, n.perp, n.second)


def test_descent_is_the_integral_over_the_gaussian_part_of_the_input():
    """E over the four centres and over w.xi ~ N(0, s^2) of the update rules (2.8), (2.9), integrated by quadrature."""
    n = _neurons()
    margins = n.margins()
    for j in range(3):
        c, s, a = np.array([n.mu1[j], n.mu2[j]]), n.perp[j], n.second[j]
        expected = np.zeros(4)
        centres = np.sqrt(2) * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])  # in the unit basis mu1/|mu1|, mu2/|mu2|
        for z, y, margin in zip(centres, (1, 1, -1, -1), margins, strict=True):
            slope, shift = 2 * y / (1 + np.exp(margin)), z @ c  # minus l' at the centre

            def mean(function, shift=shift, s=s):
                density = stats.norm(scale=s).pdf
                return integrate.quad(lambda u: function(u) * density(u), -shift, max(12 * s, 12 * s - shift))[0]

            active, along, activation = mean(lambda u: 1.0), mean(lambda u, s=s: u / s), mean(lambda u, m=shift: u + m)
            expected += slope / 4 * np.array([*(a * active * z), a * along, activation])
        assert np.allclose([part[j] for part in population.descent(n)], expected, atol=1e-7)


def test_summary_of_a_real_start_keeps_lengths_margins_and_law():
    net = network.both_layers(4000, 20, 0.3, np.random.default_rng(1))
    n = population.summarise(net)
    assert np.allclose(n.mu1**2 + n.mu2**2 + n.perp**2, 0.09)
    centres = np.zeros((4, 20))
    centres[:, :2] = [[1, -1], [-1, 1], [1, 1], [-1, -1]]
    assert np.allclose(n.margins(), net(centres) * [1, 1, -1, -1], atol=1e-12)
    drawn = population.initial(4000, 20, 0.3, np.random.default_rng(2))
    assert np.allclose(drawn.mu1**2 + drawn.mu2**2 + drawn.perp**2, 0.09)
    assert stats.ks_2samp(drawn.signal, n.signal).pvalue > 1e-3
    assert stats.ks_2samp(drawn.perp, n.perp).pvalue > 1e-3


def test_common_signal_counts_every_cluster():
    signal, second = np.array([3.0, 1, -2, -5, 4, 2, -1, -6]), np.array([1.0, 1, 1, 1, -1, -1, -1, -1])
    n = population.Neurons(signal, signal, np.ones(8), second)
    assert n.common_signal(1 / 8) == 3.0 and n.common_signal(2 / 8) == 1.0
    assert n.common_signal(3 / 8) == 0.0  # each cluster has two neurons only


def test_noise_has_the_size_of_a_minibatch():
    """E|gradient noise|^2 = a^2 E[l'^2 1(w.x > 0)] d / batch (Lemma B.12): slopes are 1 and half the points active."""
    d, eta, kappa = 50, 0.1, 0.5
    n = population.initial(100, d, 0.1, np.random.default_rng(3))
    plain, rng = population.step(n, eta), np.random.default_rng(4)
    kicked = [population.step(n, eta, kappa, d, rng) for _ in range(4000)]
    expected = (eta * 0.1) ** 2 * 0.5 / (eta * d / kappa)  # a coordinate, for a batch of eta d / kappa
    kicks = np.array([(k.mu1 - plain.mu1) * np.sign(n.second) for k in kicked])
    assert np.mean(kicks**2) == pytest.approx(expected, rel=0.05)
    assert np.mean(kicks.mean(axis=1) ** 2) == pytest.approx(expected * (0.5 + 0.5 / 100), rel=0.08)
    assert np.mean([(k.second - plain.second) ** 2 for k in kicked]) == pytest.approx(expected, rel=0.05)
    assert np.mean(kicked[0].perp ** 2 - plain.perp**2) == pytest.approx(expected * (d - 2), rel=0.01)


def test_neurons_share_half_of_a_real_minibatch():
    """The correlation of the kicks above, from real minibatch gradients at initialisation."""
    rng = np.random.default_rng(5)
    w = rng.standard_normal((40, 60))
    x = np.sign(rng.standard_normal((200_000, 60)))
    per_point = -x[:, :1] * x[:, 1:2] * (x @ w.T > 0) * (x[:, :1] - x[:, 1:2]) / np.sqrt(2)  # -y 1(w.x > 0) x.mu1
    correlation = np.corrcoef(per_point.T)
    assert np.mean(correlation[np.triu_indices(40, 1)]) == pytest.approx(0.5, abs=0.02)
    assert np.mean(per_point**2) == pytest.approx(0.5, abs=0.01)


def test_divergence_names_the_sizes():
    with pytest.raises(FloatingPointError, match=r"step_size = 9 with kappa = 5 .* dimension 40"):
        population.simulate(_neurons(), step_size=9.0, num_steps=300, noise=5.0, dimension=40,
                            rng=np.random.default_rng(0))  # fmt: skip


def test_noise_at_infinite_dimension_is_refused_before_any_step(monkeypatch):
    monkeypatch.setattr(population, "step", lambda *_: pytest.fail("a step was made"))
    with pytest.raises(ValueError, match=r"^noise = 0.5 with dimension = inf: .* finite dimension; .* noise = 0 is"):
        population.simulate(_neurons(), step_size=0.1, num_steps=3, noise=0.5, rng=np.random.default_rng(0))
    assert len(population.simulate(_neurons(), step_size=0.1, num_steps=0).history) == 1

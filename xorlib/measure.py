"""What the papers look at in a trained net: accuracies, correlations, neuron sets, conditions, boundaries."""

import numpy as np
from scipy import optimize, stats

from .data import CLUSTER_LABELS, Sample
from .network import Network


def clean_and_noisy(output: np.ndarray, sample: Sample) -> tuple[float, float]:
    """Share of clean points classified right and share of noisy points classified wrong, from outputs (n,).

    Both are 1 exactly when the sign of every output is the label before noise (Theorem 3.1, item 1, RFA). An
    output of exactly 0 counts as a mistake in both. A share over no points is 1.
    """
    as_clean = np.sign(output) == sample.clean_y
    noisy = sample.noisy
    return float(as_clean[~noisy].mean()), float(as_clean[noisy].mean()) if noisy.any() else 1.0


def correlations(net: Network, means: np.ndarray) -> np.ndarray:
    """Cosines (m, k) between each neuron and each of the given directions (k, d)."""
    units = means / np.linalg.norm(means, axis=1, keepdims=True)
    return net.weights @ units.T / np.linalg.norm(net.weights, axis=1, keepdims=True)


def neuron_sets(net: Network, means: np.ndarray, threshold: float) -> np.ndarray:
    """Membership (m, 4) in the sets J_mu of Lemma 4.2 (RFA).

    A neuron is in J_mu when its sign is the label of cluster mu and its cosine with mu is at least `threshold`
    (in the paper 1 / (3 C0 sqrt(d)), at initialisation).
    """
    own = np.sign(net.second_layer)[:, None] == CLUSTER_LABELS[None, :]
    return own & (correlations(net, means) >= threshold)


def boundary_angles(net: Network, points: int = 3600) -> np.ndarray:
    """Angles in degrees, in [0, 360), at which a net on the plane (d = 2) changes sign on the unit circle."""

    def output(angle):
        angle = np.atleast_1d(angle)
        return net(np.stack([np.cos(angle), np.sin(angle)], axis=1))

    grid = np.linspace(0.0, 2 * np.pi, points + 1)
    values = output(grid)
    brackets = np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0)
    roots = [optimize.brentq(lambda angle: output(angle)[0], grid[i], grid[i + 1]) for i in brackets]
    return np.degrees(roots) % 360


def binomial_interval(successes: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson interval of a success probability, at the given confidence level."""
    interval = stats.binomtest(int(successes), int(trials)).proportion_ci(level, method="wilson")
    return float(interval.low), float(interval.high)


def bootstrap_interval(values: np.ndarray, statistic=np.mean, level: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of a statistic over values (k,), one a seed; 10,000 fixed-seed resamples."""
    values = np.asarray(values, dtype=float)
    picks = np.random.default_rng(0).integers(0, len(values), (10_000, len(values)))
    low, high = np.quantile(statistic(values[picks], axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)

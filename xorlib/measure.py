"""What the papers look at in a trained net: accuracies, correlations, neuron sets, conditions, boundaries."""

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

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


OPPOSITE = np.array([1, 0, 3, 2])  # of each cluster the one at the opposite mean
OTHER_CLASS = np.array([2, 2, 0, 0])  # of each cluster one whose mean spans the other class
BOOLEAN_MEANS = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0]])  # +-mu1, +-mu2 of FTT, first two axes


def aligned(net: Network, sample: Sample) -> np.ndarray:
    """Whether each neuron is active on all points of a cluster and on none of the opposite one, (m, 4).

    Condition 4.7 (RFA) holds when this is true on every pair of the sets J_mu, see `neuron_sets`.
    """
    active = sample.x @ net.weights.T > 0
    on = np.stack([active[sample.cluster == c].all(axis=0) for c in range(4)], axis=1)
    off = np.stack([~active[sample.cluster == c].any(axis=0) for c in range(4)], axis=1)
    return on & off[:, OPPOSITE]


def orthogonality(net: Network, means: np.ndarray, sets: np.ndarray, step_size: float) -> float:
    """The largest |<w_j, mu>| / (step_size |a_j|) over pairs (j, cluster) in `sets` (m, 4), mu of the other class.

    Condition 4.8 (RFA) allows at most 3. It is 0 when the sets are empty.
    """
    neuron, cluster = np.nonzero(sets)
    inner = np.abs(net.weights @ means.T)[neuron, OTHER_CLASS[cluster]]
    return float((inner / (step_size * np.abs(net.second_layer[neuron]))).max(initial=0.0))


def activation_edge(net: Network, sample: Sample) -> np.ndarray:
    """Share of the sample that is clean, in the cluster and active, less the same for the opposite one, (m, 4).

    The quantity that Lemma 4.4 (RFA) bounds from below by 1/C2.
    """
    clean = (sample.cluster[:, None] == np.arange(4)) & ~sample.noisy[:, None]
    counts = (sample.x @ net.weights.T > 0).T.astype(float) @ clean
    return (counts - counts[:, OPPOSITE]) / len(sample)


def concentration_constants(
    sample: Sample, means: np.ndarray, cluster_variance: float, noise_rate: float, delta: float
) -> dict[str, float]:
    """For each part of Lemma 4.3 (RFA), "a" to "d", the smallest constant C1 with which it holds on the sample."""
    radius, rate = np.sqrt(cluster_variance * sample.x.shape[1]), np.sqrt(np.log(1 / delta) / len(sample))
    noise = sample.x - means[sample.cluster]
    along = np.sum(noise * means[sample.cluster], axis=1)
    across = np.abs(np.sum(noise * means[OTHER_CLASS[sample.cluster]], axis=1))
    sizes = np.bincount(sample.cluster, minlength=4) / len(sample)
    return {
        "a": float(max((-along).max(), across.max()) / radius),
        "b": float((noise**2).sum(axis=1).max() / radius**2),
        "c": float((sample.noisy.mean() - noise_rate) / rate),
        "d": float(np.abs(sizes - 1 / 4).max() / rate),
    }


def good_run(
    net: Network,
    sample: Sample,
    means: np.ndarray,
    *,
    cluster_variance: float,
    noise_rate: float,
    init_variance: float,
    delta: float,
    C0: float,
    C1: float = 2.0,
    C2: float = 50.0,
) -> dict[str, bool]:
    """Which of Lemmas 4.1 to 4.4 (RFA) hold for an initial net and a sample; all of them is a good run, Definition 4.5.

    Keys: "norms" and "count" (Lemma 4.1), "sets" (4.2), "data" (4.3) and "edge" (4.4).
    """
    width, dimension = net.weights.shape
    norms = np.linalg.norm(net.weights, axis=1) / np.sqrt(init_variance * dimension)
    counts = (np.abs(net.weights @ means[::2].T) >= np.sqrt(init_variance) / (2 * C0)).sum(axis=0)
    threshold = 1 / (3 * C0 * np.sqrt(dimension))
    sizes, share = neuron_sets(net, means, threshold).sum(axis=0), (1 - 1 / C0) ** 2
    captured = correlations(net, means) >= threshold
    constants = concentration_constants(sample, means, cluster_variance, noise_rate, delta)
    return {
        "norms": bool(norms.min() >= 0.5 and norms.max() <= 1.5),
        "count": bool(counts.min() >= width * (1 - 1 / (2 * C0) - np.sqrt(2 * np.log(4 / delta) / width))),
        "sets": bool(sizes.min() >= width / 4 * share and sizes.sum() >= width * share),
        "data": max(constants.values()) <= C1,
        "edge": bool(activation_edge(net, sample)[captured].min(initial=np.inf) >= 1 / C2),
    }


def boundary_angles(net: Network, points: int = 3600) -> np.ndarray:
    """Angles in degrees, in [0, 360), at which a net on the plane (d = 2) changes sign on the unit circle."""

    def output(angle):
        angle = np.atleast_1d(angle)
        return net(np.stack([np.cos(angle), np.sin(angle)], axis=1))

    # The offset keeps roots at round angles, where a symmetric net has them, off the grid.
    grid = 1e-3 / np.pi + np.linspace(0.0, 2 * np.pi, points + 1)
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


@dataclass(frozen=True)
class Components:
    """Each neuron's three orthogonal parts (FTT, (4.1)): signed lengths sig (m,) and opp (m,), and w_perp (m, d-2).

    sig is the coefficient along mu1/sqrt(2) where a >= 0 and along mu2/sqrt(2) where a < 0; opp along the other.
    """

    sig: np.ndarray
    opp: np.ndarray
    w_perp: np.ndarray

    @property
    def perp(self) -> np.ndarray:
        """The lengths ||w_perp||, shape (m,)."""
        return np.linalg.norm(self.w_perp, axis=1)


def components(net: Network) -> Components:
    """The signal, opposite and perpendicular parts of each neuron, for mu1 = e1 - e2, mu2 = e1 + e2 (FTT, (4.1))."""
    along = (net.weights[:, :2] @ np.array([[1.0, 1.0], [-1.0, 1.0]])) / np.sqrt(2)
    positive = net.second_layer >= 0
    return Components(
        np.where(positive, along[:, 0], along[:, 1]), np.where(positive, along[:, 1], along[:, 0]), net.weights[:, 2:]
    )


def own_cluster(net: Network) -> np.ndarray:
    """The cluster (m,) in 0..3 that each neuron's signal part points to (FTT, the sets S_mu of Definition D.1)."""
    return np.where(net.second_layer >= 0, 0, 2) + (components(net).sig < 0)


def cluster_margins(net: Network, neurons: np.ndarray | None = None) -> np.ndarray:
    """gamma_mu = y(mu) f(mu), shape (4,), for +mu1, -mu1, +mu2, -mu2 of FTT (norm sqrt 2).

    With a mask of heavy `neurons`, the heavy margins of Definition D.1: from those whose signal points to mu.
    """
    terms = net.scale * np.maximum(net.weights[:, :2] @ BOOLEAN_MEANS.T, 0) * net.second_layer[:, None] * CLUSTER_LABELS
    if neurons is not None:
        terms = terms * (neurons[:, None] & (own_cluster(net)[:, None] == np.arange(4)))
    return terms.sum(axis=0)


def loss_slopes(margins: np.ndarray) -> np.ndarray:
    """g_mu = |l'(mu)| = 2 e^-gamma / (1 + e^-gamma) (FTT, (2.6)); (4.17) prints half of it."""
    return 2 * special.expit(-np.asarray(margins))


@dataclass(frozen=True)
class Heaviness:
    """How signal-heavy a net is (FTT, Definition 4.2): the smallest zeta that works, its set S, the heavy margins."""

    zeta: float
    heavy: np.ndarray
    margins: np.ndarray


def signal_heaviness(net: Network, factor: float = 1.0) -> Heaviness:
    """The smallest zeta for which Definition 4.2 (FTT) holds with `factor` in place of exp(6H).

    S holds the neurons with factor ||w_perp|| + ||w_opp|| <= zeta ||w_sig||; the mass outside S is at most zeta times
    the smallest heavy margin, and E ||w||^2 - E a^2 at most zeta H, H = max(1, E a^2). The literal definition has
    factor exp(6H) and asks for zeta <= exp(-10H). zeta is inf when some cluster has no neuron at all.
    """
    parts, a = components(net), net.second_layer
    needed = (factor * parts.perp + np.abs(parts.opp)) / np.maximum(np.abs(parts.sig), 1e-300)
    order = np.argsort(needed)
    squares = (net.weights**2).sum(axis=1)
    mass = squares.sum() - np.cumsum(squares[order])
    # Heavy margins of the k neurons that need the least zeta, for every k at once.
    share = np.sqrt(2) * np.abs(parts.sig * a)[order, None] * (own_cluster(net)[order, None] == np.arange(4))
    margins = np.cumsum(share, axis=0).min(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        outside = np.where(margins > 0, np.maximum(mass, 0) / margins, np.inf)
    gap = (squares.mean() - (a**2).mean()) / max(1.0, (a**2).mean())
    zeta = float(max(np.min(np.maximum(needed[order], outside)), gap))
    heavy = needed <= zeta
    return Heaviness(zeta, heavy, cluster_margins(net, heavy))


def clean_rates(net: Network, noise: np.ndarray, slopes: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """What the clean gradient (FTT, (4.16)) does to each part of each neuron, as an average over `noise` (n, d-2).

    "sig", "opp", "perp": <part of w, grad_w> / |a|, so that a positive number shrinks the part; "second": grad_a;
    "spread": X of Lemma D.7; all (m,). Every point of the cube as noise makes them exact. `slopes` (4,) are |l'| at
    the four clusters, by default the net's own.
    """
    slopes = loss_slopes(cluster_margins(net)) if slopes is None else slopes
    parts, sign = components(net), np.sign(net.second_layer)
    outer = noise @ parts.w_perp.T
    rates = dict.fromkeys(("sig", "opp", "perp", "second"), 0.0)
    for mean, label, slope, own in zip(BOOLEAN_MEANS, CLUSTER_LABELS, slopes, (1, 1, -1, -1), strict=True):
        inner, weight = net.weights[:, :2] @ mean, -label * slope / 4
        active = outer + inner > 0
        share, along = active.mean(axis=0), (active * outer).mean(axis=0)
        rates["perp"] = rates["perp"] + weight * sign * along
        rates["second"] = rates["second"] + weight * (share * inner + along)
        signal = weight * sign * share * inner
        rates["sig"] = rates["sig"] + np.where(sign == own, signal, 0)
        rates["opp"] = rates["opp"] + np.where(sign == own, 0, signal)
    rates["spread"] = (np.abs(outer) >= np.sqrt(2) * np.abs(parts.opp)).mean(axis=0)
    return rates


@dataclass(frozen=True)
class PhaseOne:
    """FTT's bounds and neuron classes of Phase 1 (Definitions C.7 to C.13) with practical constants.

    zeta is a number here, log(d)^3 becomes 2 log(p d), the usual size of the largest squared coordinate, and one
    bound B_t serves both stages (the paper lets it grow faster in the second). Lengths are in units of theta.
    """

    dimension: int
    width: int
    step_size: float
    zeta: float = 0.5

    @property
    def rate(self) -> float:
        """tau1 = 1/sqrt(2 pi)."""
        return 1 / np.sqrt(2 * np.pi)

    @property
    def largest_start(self) -> float:
        """Q^2 = B_0^2 = 2 log(p d)/d, a bound on every squared coordinate of every neuron at the start."""
        return 2 * np.log(self.width * self.dimension) / self.dimension

    def largest_signal(self, step: float) -> float:
        """B_t^2: no neuron's squared signal part should exceed it (C.63)."""
        growth = 1 + 2 * self.step_size * self.rate * (1 + 1 / np.log(self.dimension))
        return self.largest_start * growth**step

    def smallest_strong(self, step: float) -> float:
        """S_t^2: a strong neuron's squared signal part stays above it (C.67).

        As in the paper no growth is asked for at first (until eta t = 1/tau1), then the rate (1 - 1/4) tau1.
        """
        late = max(0.0, step - 1 / (self.step_size * self.rate))
        return (1 + 2 * self.step_size * self.rate * 0.75) ** late / self.dimension

    def first_stage(self) -> int:
        """T1a: the last step with B_t <= zeta (C.65)."""
        return int(np.log(self.zeta**2 / self.largest_start) / np.log(self.largest_signal(1) / self.largest_start))

    def classes(self, net: Network, start: Network, step: int) -> dict[str, np.ndarray]:
        """Masks (m,) "controlled", "weakly_controlled" and "strong" at a step of a run from the net `start`."""
        theta = np.abs(start.second_layer[0])
        parts, before = components(net), components(start)
        sig, opp, perp = (np.abs(v) / theta for v in (parts.sig, parts.opp, parts.perp))
        a, norm = np.abs(net.second_layer) / theta, np.linalg.norm(net.weights, axis=1) / theta
        largest = np.abs(parts.w_perp).max(axis=1) / theta
        moved = np.linalg.norm(parts.w_perp - before.w_perp, axis=1) / theta
        time, bound, zeta = step * self.step_size, self.largest_signal(step), self.zeta
        noise = self.largest_start + theta * bound
        controlled = (
            (sig**2 <= min(bound, zeta**2)) & (opp**2 <= noise) & (largest**2 <= noise)
            & (np.abs(a - 1) <= time * zeta + 1e-12) & (a <= norm * (1 + 1e-9)) & (moved <= zeta**0.25 * time)
        )  # fmt: skip
        weak = (
            (sig >= zeta) & (sig**2 <= bound) & (opp <= 2 * zeta) & (a <= norm * (1 + 1e-9))
            & (a**2 >= (1 - zeta) * norm**2) & (perp**2 <= 3) & ((perp <= sig) | (largest <= zeta * perp))
        )  # fmt: skip
        strong = (controlled | weak) & (parts.sig * before.sig > 0) & (sig**2 >= self.smallest_strong(step))
        return {"controlled": controlled, "weakly_controlled": weak, "strong": strong}

"""What the papers predict, as formulas."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import erf, expit

from .data import Sample, hypercube
from .network import Network
from .population import summarise


@dataclass(frozen=True)
class Setting:
    """The sizes that RFA's assumptions speak of; variances are per coordinate, delta is the failure probability."""

    num_train: int
    dimension: int
    width: int
    cluster_variance: float
    noise_rate: float
    init_variance: float
    step_size: float
    delta: float = 0.1


def assumption_limits(s: Setting) -> dict[str, tuple[float, float]]:
    """For each of (A1)-(A7), RFA Section 3, the interval of constants C that the setting allows.

    One C > 1 must lie in all seven; `common_constant` intersects them.
    """
    log = np.log
    a1 = s.dimension / max(log(s.num_train / s.delta) ** 2, log(s.width / s.delta))
    upper = {
        "A1": a1,
        "A2": 1 / np.sqrt(s.cluster_variance * s.dimension),
        "A3": s.num_train / log(s.width / s.delta),
        "A4": np.inf if s.noise_rate == 0 else 1 / s.noise_rate,
        "A5": s.width / log(1 / s.delta),
        "A6": (s.init_variance * s.width * s.dimension) ** -0.25,
        "A7": 1 / s.step_size**2,
    }
    lower = {"A7": 1 / (4 * s.step_size**2)}
    return {name: (float(lower.get(name, 0.0)), float(limit)) for name, limit in upper.items()}


def common_constant(s: Setting) -> tuple[float, float] | None:
    """The interval of constants C > 1 that satisfies (A1)-(A7) together, or None when there is none."""
    limits = assumption_limits(s).values()
    low, high = max(1.0, *(low for low, _ in limits)), min(high for _, high in limits)
    return (low, high) if low <= high and high > 1 else None


def theorem_steps(step_size: float) -> int:
    """T = 1 + 1/(4 step_size), the stopping time of Theorem 3.1 (RFA), rounded down, at least 1."""
    return 1 + int(np.floor(1 / (4 * step_size) + 1e-9))


def expected_edge(cosine: np.ndarray, cluster_variance: float, noise_rate: float) -> np.ndarray:
    """The mean of measure.activation_edge on Gaussian clusters, for a neuron with the given cosine with the mean.

    The population form of Lemma 4.4 (RFA): a point of the cluster is active with probability Phi(cosine / sigma).
    """
    return (1 - noise_rate) / 4 * (2 * stats.norm.cdf(np.asarray(cosine) / np.sqrt(cluster_variance)) - 1)


def first_step(net: Network, sample: Sample, means: np.ndarray, step_size: float) -> tuple[np.ndarray, ...]:
    """The three parts of w_j(1) - w_j(0) in (30) of RFA, each (m, d): along the means, z1 and z2.

    The first counts active points of each cluster with their labels, as if all sat at their mean and the net gave
    0; z1 is the effect of their distances to the mean, z2 that of the initial outputs.
    """
    factor = step_size * net.second_layer[:, None] / len(sample)
    active = (sample.x @ net.weights.T > 0).T
    slope = 1 / (1 + np.exp(sample.y * net(sample.x)))  # -l'(y f)
    centres = means[sample.cluster]
    return (
        factor / 2 * ((active * sample.y) @ centres),
        factor / 2 * ((active * sample.y) @ (sample.x - centres)),
        factor * ((active * (sample.y * (slope - 1 / 2))) @ sample.x),
    )


def cross_error(cluster_variance: float) -> float:
    """Clean error of sgn(|<mu1, x>| - |<mu2, x>|) on Gaussian clusters (RFA, equation (2)).

    In the rotated coordinates u + v and u - v the two noises are independent with variance 2 sigma^2, and the
    sign is wrong when exactly one of them passes its mean: 2 p (1 - p) with p = Phi(-1 / (sigma sqrt 2)).
    """
    p = stats.norm.cdf(-1 / np.sqrt(2 * cluster_variance))
    return float(2 * p * (1 - p))


# One-dimensional log-concave laws with mean 0 and variance 1; the last is the least symmetric there is.
UNIT_LAWS = {
    "gaussian": stats.norm(),
    "uniform": stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)),
    "laplace": stats.laplace(0, 1 / np.sqrt(2)),
    "exponential": stats.expon(-1, 1),
}


def cross_error_chain(law: str, cluster_variance: float) -> tuple[float, float, float]:
    """Appendix D of RFA for noise with independent coordinates: (error, chance, tail bound).

    The cross's clean error, P(some |<mu_i, z>| > 1/3) and 3 exp(-1/(3 sigma)), with `law` a key of UNIT_LAWS. At
    mean +-mu1 the cross errs when |z1 +- 1| < |z2|: numerical integration over z1, the tails of z2 being known.
    """
    sigma, unit = np.sqrt(cluster_variance), UNIT_LAWS[law]
    first = np.linspace(-2 - 40 * sigma, 2 + 40 * sigma, 8_001)

    def beyond(distance):
        return unit.sf(distance / sigma) + unit.cdf(-distance / sigma)

    missed = (beyond(np.abs(first + 1)) + beyond(np.abs(first - 1))) / 2
    error = np.trapezoid(unit.pdf(first / sigma) / sigma * missed, first)
    one = beyond(1 / 3)
    return float(error), float(2 * one - one**2), float(3 * np.exp(-1 / (3 * sigma)))


def rademacher_bound(x: np.ndarray, radius: float = 1.0) -> float:
    """Appendix B of RFA: 2 R sqrt(mean ||x||^2) / sqrt(n), for the nets with ||W||_F <= R on the points x (n, d)."""
    return float(2 * radius * np.sqrt((x**2).sum(1).mean() / len(x)))


def rademacher_ascent(
    x: np.ndarray, signs: np.ndarray, rng: np.random.Generator, num_starts: int = 16, num_steps: int = 40
) -> float:
    """The largest (1/n) sum_i signs_i f(x_i; W) that an ascent finds over the nets with ||W||_F <= 1 (Appendix B, RFA).

    f is homogeneous in each neuron, so by Cauchy-Schwarz the supremum is sqrt((p^2 + q^2) / 2) at every even width,
    with p the supremum over one unit neuron and q that for -signs. Each is sought at once from num_starts random
    directions and as many orthogonal to a point: narrow maxima lie where a cluster is cut in two.
    """

    def best(signs):
        units, cut = rng.standard_normal((2 * num_starts, x.shape[1])), rng.choice(x, num_starts)
        units[num_starts:] -= cut * ((units[num_starts:] * cut).sum(1) / (cut**2).sum(1))[:, None]
        units /= np.linalg.norm(units, axis=1, keepdims=True)
        highest = 0.0
        for step in range(num_steps):
            pre = units @ x.T
            highest = max(highest, float((np.maximum(pre, 0) @ signs).max() / len(x)))
            gradient = ((pre > 0) * signs) @ x
            gradient /= np.maximum(np.linalg.norm(gradient, axis=1, keepdims=True), 1e-300)
            units += gradient / (1 + step / 4)
            units /= np.linalg.norm(units, axis=1, keepdims=True)
        return highest

    return float(np.hypot(best(signs), best(-signs)) / np.sqrt(2))


def rademacher_plane(x: np.ndarray, signs: np.ndarray) -> float:
    """The exact supremum that `rademacher_ascent` seeks, for points x (n, 2) of the plane.

    Between two angles at which a point starts or stops being active the objective is linear in the neuron: its
    maximum there is at the gradient's own angle, if that lies between them, or at an end.
    """
    angles = np.arctan2(x[:, 1], x[:, 0])
    kinks = np.sort(np.concatenate([angles + np.pi / 2, angles - np.pi / 2]) % (2 * np.pi))
    ends = np.append(kinks, kinks[0] + 2 * np.pi)
    middle, half = (ends[1:] + ends[:-1]) / 2, (ends[1:] - ends[:-1]) / 2

    def best(signs):
        def value(angle):
            return np.maximum(np.stack([np.cos(angle), np.sin(angle)], 1) @ x.T, 0) @ signs / len(x)

        active = np.stack([np.cos(middle), np.sin(middle)], 1) @ x.T > 0
        gradient = (active * signs) @ x / len(x)
        turn = np.arctan2(gradient[:, 1], gradient[:, 0]) - middle
        inside = np.abs((turn + np.pi) % (2 * np.pi) - np.pi) <= half
        return max(value(kinks).max(), np.linalg.norm(gradient[inside], axis=1).max(initial=0.0), 0.0)

    return float(np.hypot(best(signs), best(-signs)) / np.sqrt(2))


class Gradients(NamedTuple):
    """Gradients of every neuron, scaled by the width as in FTT, (2.8) and (2.9): first layer (p, d), second (p,)."""

    weights: np.ndarray
    second_layer: np.ndarray


def loss_derivative(net: Network, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """l'_rho (n,) at points x (n, d) with labels y (n,): the derivative of -2 log sigmoid(y f) in f (FTT, (2.6))."""
    return -2 * y * expit(-y * net(x))


def gradients(net: Network, x: np.ndarray, derivative: np.ndarray) -> Gradients:
    """Gradients averaged over points x (n, d), given the loss derivative (n,) at each (FTT, (2.8) and (2.9))."""
    pre = x @ net.weights.T
    weights = net.second_layer[:, None] * ((pre > 0).T @ (derivative[:, None] * x)) / len(x)
    return Gradients(weights, derivative @ np.maximum(pre, 0.0) / len(x))


def signal_plane(x: np.ndarray) -> np.ndarray:
    """z (n, d): the points x (n, d) with every coordinate but the first two set to 0 (FTT, (2.2))."""
    return np.where(np.arange(x.shape[1]) < 2, x, 0.0)


def population_gradients(net: Network, kind: str = "loss", points: np.ndarray | None = None) -> Gradients:
    """Exact population gradients of Boolean XOR, by enumeration of all 2^d inputs (FTT).

    `kind`: "loss" for L_rho, "zero" for L_0, the loss linearised at output 0 (4.2), "clean" for the gradients with
    l'_rho(z) in place of l'_rho(x) (4.16). With `points` (n, d), averages over these instead: Monte Carlo where d
    is large. Raises ValueError for an unknown kind.
    """
    if kind not in ("loss", "zero", "clean"):
        raise ValueError(f"kind = {kind!r} is unknown: one of loss, zero, clean")
    x = hypercube(net.weights.shape[1]) if points is None else points
    y = -x[:, 0] * x[:, 1]
    if kind == "zero":
        return gradients(net, x, -y)
    return gradients(net, x, loss_derivative(net, x if kind == "loss" else signal_plane(x), y))


class SignedSum:
    """The exact law of xi . u for uniform signs xi: both halves of u (l,) are enumerated, sorted and met in the middle.

    2^(l/2) work instead of 2^l. Raises ValueError above l = 44, where a half no longer fits.
    """

    def __init__(self, u: np.ndarray):
        if len(u) > 44:
            raise ValueError(f"a sum of {len(u)} signs is too long to enumerate: at most 44")
        halves = []
        for part in (u[::2], u[1::2]):
            sums = np.zeros(1)
            for value in part:
                sums = np.concatenate([sums - value, sums + value])
            halves.append(np.sort(sums))
        self._left, self._right = halves

    def between(self, low: float, high: float) -> float:
        """P[low <= xi . u <= high], ends included; an end at which the sum has an atom is subject to rounding."""
        counts = np.searchsorted(self._right, high - self._left, "right")
        counts -= np.searchsorted(self._right, low - self._left, "left")
        return max(0.0, float(counts.sum()) / (len(self._left) * len(self._right)))


PLANE_LAWS = ("boolean", "gaussian", "linear")


def signal_plane_gradient(net: Network, law: str = "boolean") -> np.ndarray:
    """Gradient of L_0 in the first two coordinates (p, 2), from lines 4, 5 and 6 of (4.4) (FTT).

    `law` is how w . xi is treated: "boolean" exactly (d <= 46), "gaussian" as N(0, ||w_perp||^2), "linear" by the
    density at 0 of N(0, ||w||^2), which gives (4.5). Raises ValueError for an unknown law.
    """
    if law not in PLANE_LAWS:
        raise ValueError(f"law = {law!r} is unknown: one of {', '.join(PLANE_LAWS)}")
    plane, rest = net.weights[:, :2], net.weights[:, 2:]
    z = np.array([[1.0, -1.0], [1.0, 1.0]])  # mu1, mu2; -mu1 and -mu2 give the same terms
    reach = np.abs(plane @ z.T)
    if law == "boolean":
        sums = map(SignedSum, rest)
        within = np.array([[s.between(-r, r) for r in pair] for s, pair in zip(sums, reach, strict=True)])
    elif law == "gaussian":
        within = erf(reach / (np.sqrt(2) * np.linalg.norm(rest, axis=1, keepdims=True)))
    else:
        within = np.sqrt(2 / np.pi) * reach / np.linalg.norm(net.weights, axis=1, keepdims=True)
    return -0.25 * net.second_layer[:, None] * ((np.sign(plane @ z.T) * within * [1.0, -1.0]) @ z)


def zero_output_products(net: Network) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The right sides of Lemma C.4 (FTT), items 1 to 3 (p,) and item 4 (p, d - 2), by enumeration of xi.

    They equal minus the products of w_sig, w_opp, w_perp and w_i with the gradient of L_0. Item 4 carries the sign
    that makes it so, the reverse of the printed one.
    """
    neurons = summarise(net)
    size, rest = np.abs(net.second_layer), net.weights[:, 2:]
    signal = np.sqrt(2) * np.abs(neurons.signal)
    opposite = np.sqrt(2) * np.abs(np.where(net.second_layer >= 0, neurons.mu2, neurons.mu1))
    xi = hypercube(rest.shape[1])
    total = xi @ rest.T
    near_signal, near_opposite = np.abs(total) <= signal, np.abs(total) <= opposite
    item_1 = size / 4 * near_signal.mean(axis=0) * signal
    item_2 = -size / 4 * near_opposite.mean(axis=0) * opposite
    item_3 = size / 4 * ((near_opposite * 1.0 - near_signal) * np.abs(total)).mean(axis=0)
    item_4 = np.empty_like(rest)
    for i, w in enumerate(np.abs(rest).T):
        others = total - xi[:, i, None] * rest[:, i]
        difference = (np.abs(others - signal) <= w) * 1.0 - (np.abs(others - opposite) <= w)
        item_4[:, i] = size * w / 4 * difference.mean(axis=0)
    return item_1, item_2, item_3, item_4

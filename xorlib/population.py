"""SGD of FTT as a motion of four numbers a neuron: a step costs O(width) at any dimension (Sections 4.1, 4.2)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr

from .network import Network

CLUSTER_SIGNAL_RATE = np.sqrt(2) / 4  # tau2: the growth rate of a neuron that only one cluster activates
SMALL_SIGNAL_RATE = 1 / np.sqrt(2 * np.pi)  # tau1: the rate while the signal is small against w_perp, equation (4.5)


@dataclass(frozen=True)
class Neurons:
    """What the expected step of a neuron depends on, arrays (p,): `mu1` and `mu2` are the coordinates along the unit
    vectors mu1/sqrt(2) and mu2/sqrt(2), `perp` is the length of w_perp, `second` is a."""

    mu1: np.ndarray
    mu2: np.ndarray
    perp: np.ndarray
    second: np.ndarray

    @property
    def signal(self) -> np.ndarray:
        """Signed coordinate of w_sig (4.1): along mu1 where a >= 0, along mu2 elsewhere."""
        return np.where(self.second >= 0, self.mu1, self.mu2)

    def margins(self) -> np.ndarray:
        """gamma_mu = y(mu) f(mu) at mu1, -mu1, mu2, -mu2, shape (4,) (Table 1)."""
        return np.array([
            sign * np.sqrt(2) * np.mean(self.second * np.maximum(end * coordinate, 0.0))
            for sign, coordinate in ((1, self.mu1), (-1, self.mu2)) for end in (1, -1)
        ])  # fmt: skip

    def loss(self) -> float:
        """Mean of 2 log(1 + exp(-gamma_mu)) over the four clusters: (2.5) with the part of f due to xi left out."""
        return float(2 * np.mean(np.logaddexp(0.0, -self.margins())))

    def common_signal(self, share: float = 0.1) -> float:
        """The signal that a `share` of all neurons reaches in every cluster; 0 when some cluster has fewer."""
        need = int(np.ceil(share * len(self.second)))
        reached = []
        for coordinate in (self.mu1[self.second >= 0], self.mu2[self.second < 0]):
            for values in (coordinate, -coordinate):
                reached.append(np.partition(values, -need)[-need] if need <= len(values) else 0.0)
        return float(max(0.0, min(reached)))


def summarise(net: Network) -> Neurons:
    """The four numbers of each neuron of a net."""
    w = net.weights
    mu1, mu2 = (w[:, 0] - w[:, 1]) / np.sqrt(2), (w[:, 0] + w[:, 1]) / np.sqrt(2)
    return Neurons(mu1, mu2, np.linalg.norm(w[:, 2:], axis=1), net.second_layer)


def initial(width: int, dimension: int, init_scale: float, rng: np.random.Generator) -> Neurons:
    """The summary of FTT's initialisation (Section 2.2), in the exact law, drawn without making the weights."""
    plane, signs = rng.standard_normal((2, width)), rng.choice([-1.0, 1.0], width)
    rest = np.sqrt(rng.chisquare(dimension - 2, width))  # last: how many draws it takes depends on the dimension
    radius = init_scale / np.hypot(np.hypot(*plane), rest)
    return Neurons(*(plane * radius), rest * radius, init_scale * signs)


def descent(n: Neurons) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Minus the population gradients of (mu1, mu2, perp, second), each (p,), for xi Gaussian and f(x) ~ f(z).

    The two approximations are those of (4.4) and of the clean gradient (4.15): w.xi is N(0, perp^2), and the
    output is taken without xi.
    """
    g = 2 / (1 + np.exp(n.margins()))  # |l'| at the four centres, with the factor 2 of (2.6)
    a = n.second
    change_plane, change_perp, change_second = [], 0.0, 0.0
    for sign, coordinate, (plus, minus) in ((1, n.mu1, g[:2]), (-1, n.mu2, g[2:])):
        mean = np.sqrt(2) * coordinate  # of w.x on the cluster
        active, density = ndtr(mean / n.perp), np.exp(-0.5 * (mean / n.perp) ** 2) / np.sqrt(2 * np.pi)
        change_plane.append(sign * a * CLUSTER_SIGNAL_RATE * (plus * active - minus * (1 - active)))
        change_perp = change_perp + sign * a / 4 * (plus + minus) * density
        mean_activation = plus * mean * active - minus * mean * (1 - active) + (plus + minus) * n.perp * density
        change_second = change_second + sign / 4 * mean_activation
    return *change_plane, change_perp, change_second


def step(
    n: Neurons, step_size: float, noise: float = 0.0, dimension: float = np.inf, rng: np.random.Generator | None = None
) -> Neurons:
    """One step of the dynamics. `noise` is kappa = step_size * dimension / batch_size; 0 is the population's step.

    With noise every coordinate of w gets the minibatch's variance step_size^2 a^2 E[l'^2 1(w.x > 0)] / batch
    (Lemma B.12); in w_perp, where there are d - 2 of them, it adds its mean to the squared length.
    """
    mu1, mu2, perp, second = (
        value + step_size * change
        for value, change in zip((n.mu1, n.mu2, n.perp, n.second), descent(n), strict=True)
    )
    if noise:
        slope_square = 0.5 * np.mean((2 / (1 + np.exp(n.margins()))) ** 2)
        variance = step_size * noise / dimension * slope_square  # step_size^2 v / batch
        # Neurons share the minibatch: 1(w.x > 0) is 1/2 plus half a sign, and the 1/2 kicks all of them alike.
        own, shared = rng.standard_normal((3, len(n.second))), rng.standard_normal((2, 1))
        kicks = np.sqrt(variance) * (own[:2] + shared) / np.sqrt(2)
        length = np.sqrt(n.mu1**2 + n.mu2**2 + n.perp**2)
        mu1, mu2 = mu1 + n.second * kicks[0], mu2 + n.second * kicks[1]
        second = second + length * np.sqrt(variance) * own[2]
        perp = np.sqrt(perp**2 + n.second**2 * variance * (dimension - 2))
    return Neurons(mu1, mu2, np.abs(perp), second)


@dataclass(frozen=True)
class Trajectory:
    """The last neurons, and one row a step: `time` (step_size * step), loss, smallest and largest margin, and
    `common_signal` (see Neurons)."""

    neurons: Neurons
    history: pd.DataFrame

    def time_to_loss(self, loss: float) -> float:
        """First time with a loss below the given one; NaN when the run never gets there."""
        reached = self.history.loss < loss
        return float(self.history.time[reached.idxmax()]) if reached.any() else float("nan")

    def time_to_signal(self, size: float) -> float:
        """Time at which common_signal first reaches a size, interpolated in its logarithm: T1 of Lemma C.1."""
        time, signal = self.history.time.to_numpy(), self.history.common_signal.to_numpy()
        k = int(np.argmax(signal >= size))
        if signal[k] < size:
            return float("nan")
        if k == 0 or signal[k - 1] <= 0:
            return float(time[k])
        part = np.log(size / signal[k - 1]) / np.log(signal[k] / signal[k - 1])
        return float(time[k - 1] + part * (time[k] - time[k - 1]))


def simulate(
    neurons: Neurons,
    *,
    step_size: float,
    num_steps: int,
    noise: float = 0.0,
    dimension: float = np.inf,
    rng: np.random.Generator | None = None,
    until_loss: float = 0.0,
) -> Trajectory:
    """Run the dynamics for num_steps, or until the loss falls below until_loss; see `step` for the noise.

    Raises ValueError for noise at infinite dimension, and FloatingPointError, naming the sizes, when the motion stops
    being finite.
    """
    if noise > 0 and not np.isfinite(dimension):
        raise ValueError(f"noise = {noise:g} with dimension = {dimension:g}: noise above 0 needs a finite dimension; "
                         "at infinite dimension only noise = 0 is allowed")  # fmt: skip
    rows = []
    for count in range(num_steps + 1):
        margins = neurons.margins()
        loss = float(2 * np.mean(np.logaddexp(0.0, -margins)))
        if not np.isfinite(loss) or loss > 20:
            raise FloatingPointError(
                f"the dynamics diverged at step {count}: step_size = {step_size:g} with kappa = {noise:g} is too large "
                f"at dimension {dimension:g}"
            )
        rows.append((count * step_size, loss, margins.min(), margins.max(), neurons.common_signal()))
        if loss < until_loss or count == num_steps:
            break
        neurons = step(neurons, step_size, noise, dimension, rng)
    columns = ["time", "loss", "smallest_margin", "largest_margin", "common_signal"]
    return Trajectory(neurons, pd.DataFrame(rows, columns=columns))


def phase_one_time(log_dimension: np.ndarray, noise: float = 0.0) -> np.ndarray:
    """Our prediction for eta T1 up to lower order: L / tau1 + kappa L^2 / (8 tau1^2), with L = ln(d) / 2.

    The signal grows at the rate tau1 |a| / |w_perp|, and the minibatches lengthen w_perp as
    theta sqrt(1 + kappa eta t / 2); integrate and solve for growth by exp(L). Noiseless: (sqrt(2 pi) / 2) ln d.
    """
    growth = np.asarray(log_dimension) / 2
    return growth / SMALL_SIGNAL_RATE + noise * growth**2 / (8 * SMALL_SIGNAL_RATE**2)

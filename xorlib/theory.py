"""What the papers predict, as formulas."""

from dataclasses import dataclass

import numpy as np
from scipy import stats


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


def cross_error(cluster_variance: float) -> float:
    """Clean error of sgn(|<mu1, x>| - |<mu2, x>|) on Gaussian clusters (RFA, equation (2)).

    In the rotated coordinates u + v and u - v the two noises are independent with variance 2 sigma^2, and the
    sign is wrong when exactly one of them passes its mean: 2 p (1 - p) with p = Phi(-1 / (sigma sqrt 2)).
    """
    p = stats.norm.cdf(-1 / np.sqrt(2 * cluster_variance))
    return float(2 * p * (1 - p))

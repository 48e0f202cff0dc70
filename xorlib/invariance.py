"""FTT, Appendix F: what a rotationally invariant learner cannot tell apart, counted exactly, and who escapes it."""

from dataclasses import dataclass
from math import comb

import numpy as np

from .data import hypercube


@dataclass(frozen=True)
class Cells:
    """The hypercube cut into the sets Q_k of points with the same inner products with x_1 .. x_n.

    `mass` (K,) is |Q_k| / 2^d. `minority` and `contested` (K,) are the mean over pairs (i, j) of the rarer label's
    share in Q_k, and the share of pairs where that is at least 0.15.
    """

    dimension: int
    mass: np.ndarray
    minority: np.ndarray
    contested: np.ndarray

    def lower_bound(self) -> float:
        """The smallest error an invariant learner can have, even one told the pair (i, j): (F.3) before rounding."""
        return float(self.mass @ self.minority)

    def log2_sizes(self) -> np.ndarray:
        """log2 |Q_k|, shape (K,)."""
        return np.log2(self.mass) + self.dimension


def cells(x: np.ndarray) -> Cells:
    """The exact cells of training points x (n, d), entries +-1, for any label -x_i x_j (Appendix F).

    Coordinates with equal columns in x, up to sign, play the same part: only the sums of q over each group matter,
    so prod(group size + 1) states stand for all 2^d points. Raises ValueError above 2^21 states.
    """
    num, d = x.shape
    columns = x * x[0] if num else np.ones((1, d))  # flipping a coordinate of the cube flips labels, not minorities
    groups, sizes = np.unique(columns, axis=1, return_counts=True)
    if (num_states := float(np.prod(sizes + 1.0))) > 2**21:
        raise ValueError(f"{num} points in dimension {d} leave {num_states:.3g} states: at most 2^21")
    axes = [2.0 * np.arange(size + 1) - size for size in sizes]
    sums = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")])
    weight = np.ones(1)
    for size in sizes:
        weight = np.outer(weight, [comb(size, k) / 2.0**size for k in range(size + 1)]).ravel()
    cell = np.zeros(len(weight), dtype=np.int64)
    for row in groups[:num]:  # one training point after the other splits the cells
        product = ((row @ sums + d) / 2).astype(np.int64)
        cell = np.unique(cell * (d + 1) + product, return_inverse=True)[1]
    mass = np.bincount(cell, weight)
    minority, contested, num_pairs = np.zeros_like(mass), np.zeros_like(mass), d * (d - 1) / 2
    for g, size in enumerate(sizes):
        for h in range(g, len(sizes)):
            if g == h and size == 1:
                continue
            # E[q_i q_j] given the sums, for i in group g and another j in group h.
            if g == h:
                pairs, product = size * (size - 1) / 2, (sums[g] ** 2 - size) / (size * (size - 1))
            else:
                pairs, product = size * sizes[h], sums[g] * sums[h] / (size * sizes[h])
            rarer = (1 - np.abs(np.bincount(cell, weight * product) / mass)) / 2
            minority += pairs / num_pairs * rarer
            contested += pairs / num_pairs * (rarer >= 0.15 - 1e-12)
    return Cells(d, mass, minority, contested)


def lookalikes(x_train: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The set Q of all points of the hypercube with the same products with x_train (n, d) as x (d,); shape (|Q|, d)."""
    cube = hypercube(len(x))
    return cube[np.all(cube @ x_train.T == x_train @ x, axis=1)]


def swap(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The reflection (d, d) that exchanges x and q, of equal length, and fixes what is orthogonal to x - q.

    It fixes every training point with equal products with x and q: the rotation in the proof of Proposition F.1.
    """
    v = x - q
    return np.eye(len(x)) - 2 * np.outer(v, v) / (v @ v)


def consistent_pairs(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """All pairs i < j with -x_i x_j = y on every sample, shape (k, 2): a learner that is not rotation-invariant."""
    agreement = -(x * y[:, None]).T @ x
    return np.argwhere(np.triu(agreement >= len(y) - 0.5, k=1))


def counted_constant(dimension: int) -> float:
    """The c of Claim F.2 that the counting in its proof gives at this dimension, in exact integers; 0 if none.

    A set Q where more than 3/4 of the d - 1 pairs (1, j) have a label share above 0.85 has a tenth of its points
    agreeing with one sign pattern on at least 0.8 of those pairs: count all such points, times ten.
    """
    d = dimension
    most = 0
    for size in range(int(0.75 * (d - 1)) + 1, d):
        fewest = -(-4 * size // 5)
        agree, term = 0, comb(size, fewest)
        for k in range(fewest, size + 1):
            agree, term = agree + term, term * (size - k) // (k + 1)
        most = max(most, 2 * agree * 2 ** (d - 1 - size))
    bits = (10 * most).bit_length()
    log2_most = np.log2(float(10 * most >> max(0, bits - 60))) + max(0, bits - 60)
    return float(max(0.0, 1 - log2_most / d))


def counted_bound(dimension: int, num_train: int) -> float:
    """The error bound that Proposition F.1's proof gives with its constants counted: 0.0375 (1 - K 2^(-cd))."""
    lost = num_train * np.log2(dimension + 1) - counted_constant(dimension) * dimension
    return float(0.25 * 0.15 * max(0.0, 1 - 2.0 ** min(lost, 0.0)))

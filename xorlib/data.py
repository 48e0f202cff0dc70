"""The two input distributions: noisy XOR clusters (RFA, Section 2) and the Boolean hypercube (FTT, Section 2.1)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

CLUSTER_LABELS = np.array([1.0, 1.0, -1.0, -1.0])  # of +mu1, -mu1, +mu2, -mu2
LAWS = ("gaussian", "uniform", "laplace")
FLIPS = ("iid", "per-cluster", "one-cluster", "boundary", "adversarial")


@dataclass(frozen=True)
class Sample:
    """A labelled sample: x (n, d), y (n,), the label before noise clean_y (n,), cluster (n,) in 0..3.

    Clusters are numbered in the order +mu1, -mu1, +mu2, -mu2.
    """

    x: np.ndarray
    y: np.ndarray
    clean_y: np.ndarray
    cluster: np.ndarray

    @property
    def noisy(self) -> np.ndarray:
        """Mask (n,) of the points whose label was flipped: the set N of RFA, its complement the set C."""
        return self.y != self.clean_y

    def __len__(self) -> int:
        return len(self.y)


class Streams(NamedTuple):
    """One random generator a purpose, so that changing one size leaves every other draw as it was."""

    data: np.random.Generator
    noise: np.random.Generator
    init: np.random.Generator
    test: np.random.Generator
    batch: np.random.Generator


def streams(seed: int) -> Streams:
    """The independent generators that belong to one seed."""
    return Streams(*map(np.random.default_rng, np.random.SeedSequence(seed).spawn(len(Streams._fields))))


def xor_means(dimension: int, directions: np.ndarray | None = None) -> np.ndarray:
    """The four cluster means (4, d), from two orthonormal directions (2, d); the first two axes by default.

    Raises ValueError when the directions are not orthonormal to 1e-9.
    """
    if directions is None:
        directions = np.eye(2, dimension)
    directions = np.asarray(directions, dtype=float)
    if directions.shape != (2, dimension):
        raise ValueError(f"directions has shape {directions.shape}: (2, {dimension}) is needed")
    if not np.allclose(directions @ directions.T, np.eye(2), atol=1e-9):
        raise ValueError("directions are not orthonormal: their Gram matrix must be the identity to 1e-9")
    return np.stack([directions[0], -directions[0], directions[1], -directions[1]])


def cluster_noise(law: str, shape: tuple[int, ...], variance: float, rng: np.random.Generator) -> np.ndarray:
    """Log-concave noise with mean 0 and covariance `variance` times the identity.

    Raises ValueError for a law that is not one of "gaussian", "uniform" (a cube), "laplace" (a product).
    """
    sigma = np.sqrt(variance)
    if law == "gaussian":
        return rng.normal(0.0, sigma, shape)
    if law == "uniform":
        return rng.uniform(-np.sqrt(3) * sigma, np.sqrt(3) * sigma, shape)
    if law == "laplace":
        return rng.laplace(0.0, sigma / np.sqrt(2), shape)
    raise ValueError(f"law = {law!r} is unknown: one of {', '.join(LAWS)}")


def flip_labels(
    clean_y, cluster, noise_rate: float, flips: str, rng: np.random.Generator, *, x=None, means=None
) -> np.ndarray:
    """Labels (n,) after noise.

    "iid": each flipped with probability noise_rate; "per-cluster": exactly floor(noise_rate * size) of each, the same
    number in all four.
    The other kinds flip exactly floor(noise_rate * n) points, the last two chosen by x (n, d) and means (4, d):
    "one-cluster": random ones of cluster +mu1; "boundary": those nearest to |<mu1, x>| = |<mu2, x>|;
    "adversarial": those most like a victim, the point nearest to that boundary, which keeps its label.
    Raises ValueError for another kind, and for "per-cluster" where the clusters' sizes make those numbers differ.
    """
    if flips == "iid":
        flipped = rng.random(len(clean_y)) < noise_rate
    elif flips == "per-cluster":
        sizes = [int(np.sum(np.asarray(cluster) == c)) for c in range(4)]
        # The guard keeps floor(0.15 * 20) at 3 although 0.15 * 20 is 2.999...
        counts = [int(np.floor(noise_rate * size + 1e-9)) for size in sizes]
        if len(set(counts)) > 1:
            raise ValueError(f"noise_rate = {noise_rate:g} flips {counts} labels in clusters of {sizes} points, not "
                             "the same number in each: use balanced=True with num a multiple of 4")  # fmt: skip
        flipped = np.zeros(len(clean_y), dtype=bool)
        for c in range(4):
            members = rng.permutation(np.flatnonzero(cluster == c))
            flipped[members[: counts[c]]] = True
    elif flips in FLIPS:
        budget = int(np.floor(noise_rate * len(clean_y) + 1e-9))
        if flips == "one-cluster":
            order = rng.permutation(np.flatnonzero(cluster == 0))
        else:
            along = np.abs(x @ means[[0, 2]].T)
            order = np.argsort(np.abs(along[:, 0] - along[:, 1]))
            if flips == "adversarial":
                victim = order[0]
                order = np.argsort(-(x @ x[victim]))
                order = order[order != victim]
        flipped = np.isin(np.arange(len(clean_y)), order[:budget])
    else:
        raise ValueError(f"flips = {flips!r} is unknown: one of {', '.join(FLIPS)}")
    return np.where(flipped, -clean_y, clean_y)


def xor_clusters(
    num: int,
    dimension: int,
    cluster_variance: float,
    noise_rate: float,
    rng: np.random.Generator,
    noise_rng: np.random.Generator,
    *,
    law: str = "gaussian",
    directions: np.ndarray | None = None,
    flips: str = "iid",
    balanced: bool = False,
) -> Sample:
    """Noisy XOR clusters (RFA, Section 2): x = mean + noise, label +1 on +-mu1 and -1 on +-mu2, some flipped.

    `rng` draws clusters and inputs, `noise_rng` the flips. `balanced` gives each cluster num // 4 points (the
    first clusters one more where num is no multiple of 4); otherwise clusters are drawn uniformly.
    """
    means = xor_means(dimension, directions)
    cluster = np.arange(num) % 4 if balanced else rng.integers(0, 4, num)
    x = means[cluster] + cluster_noise(law, (num, dimension), cluster_variance, rng)
    clean_y = CLUSTER_LABELS[cluster]
    y = flip_labels(clean_y, cluster, noise_rate, flips, noise_rng, x=x, means=means)
    return Sample(x, y, clean_y, cluster)


# One byte gives eight signs by table look-up, ten times as fast as drawing integers one by one.
SIGNS_OF_BYTE = (2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) - 1).astype(np.float32)


def random_signs(num: int, dimension: int, rng: np.random.Generator, dtype=np.float64) -> np.ndarray:
    """Independent uniform signs (num, dimension), drawn eight to a random byte."""
    bytes_a_row = -(-dimension // 8)
    packed = np.frombuffer(rng.bytes(num * bytes_a_row), dtype=np.uint8)
    signs = np.take(SIGNS_OF_BYTE, packed, axis=0).reshape(num, 8 * bytes_a_row)
    return np.ascontiguousarray(signs[:, :dimension], dtype=dtype)


def boolean_xor(num: int, dimension: int, rng: np.random.Generator, dtype=np.float64) -> Sample:
    """Boolean XOR (FTT, Section 2.1): x uniform on {-1, 1}^d, y = -x1 x2, no label noise.

    Here mu1 = e1 - e2 and mu2 = e1 + e2, both of norm sqrt 2.
    """
    return boolean_sample(random_signs(num, dimension, rng, dtype))


def boolean_sample(x: np.ndarray) -> Sample:
    """The Sample that belongs to given points x (n, d) of the hypercube, with y = -x1 x2 (FTT, Section 2.1)."""
    y = -x[:, 0] * x[:, 1]
    cluster = np.where(y > 0, 0, 2) + (x[:, 0] < 0)
    return Sample(x, y, y, cluster)


def hypercube(dimension: int) -> np.ndarray:
    """Every point of {-1, 1}^d, shape (2^d, d). Raises ValueError above d = 20, where it no longer fits."""
    if dimension > 20:
        raise ValueError(f"dimension = {dimension} is too large to enumerate: at most 20")
    bits = (np.arange(2**dimension)[:, None] >> np.arange(dimension)[::-1]) & 1
    return 2.0 * bits - 1

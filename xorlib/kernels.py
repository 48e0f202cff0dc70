"""Kernel and linear methods, the baselines that cannot learn features: ridge regression with fixed kernels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from .data import Sample

Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]
RIDGES = (1e-6, 1e-4, 1e-2, 1.0, 100.0)


def _angle(x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angles and products of norms between all pairs of rows, both (n, k)."""
    norms = np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(z, axis=1)
    return np.arccos(np.clip(x @ z.T / np.maximum(norms, 1e-300), -1.0, 1.0)), norms


def ntk_first_layer(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """NTK (n, k) of the infinitely wide two-layer ReLU net of which only the first layer trains (RFA, Section 2).

    E[relu'(w.x) relu'(w.z)] <x, z> over Gaussian w, that is <x, z> (pi - angle) / (2 pi).
    """
    angle, norms = _angle(x, z)
    return norms * np.cos(angle) * (np.pi - angle) / (2 * np.pi)


def ntk_both_layers(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """NTK (n, k) with both layers training (FTT, Section 2.2): the first layer's plus E[relu(w.x) relu(w.z)].

    Gaussian w with identity covariance and second-layer weights +-1.
    """
    angle, norms = _angle(x, z)
    return norms * (np.sin(angle) + 2 * (np.pi - angle) * np.cos(angle)) / (2 * np.pi)


def quadratic(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The dot-product kernel (1 + u)^2, u = <x, z> / d: shape (n, k)."""
    return (1 + x @ z.T / x.shape[1]) ** 2


def exponential(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The dot-product kernel exp(u), u = <x, z> / d: shape (n, k)."""
    return np.exp(x @ z.T / x.shape[1])


def laplace(bandwidth: float) -> Kernel:
    """The kernel exp(-|x - z| / bandwidth)."""

    def kernel(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        squares = (x**2).sum(1)[:, None] + (z**2).sum(1) - 2 * x @ z.T
        return np.exp(-np.sqrt(np.maximum(squares, 0.0)) / bandwidth)

    return kernel


def random_features(num_features: int, dimension: int, rng: np.random.Generator) -> Kernel:
    """The kernel of regression on fixed random ReLU features: the mean of relu(w.x) relu(w.z) over Gaussian w."""
    weights = rng.standard_normal((dimension, num_features))

    def kernel(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        left = np.maximum(x @ weights, 0.0)
        right = left if z is x else np.maximum(z @ weights, 0.0)
        return left @ right.T / num_features

    return kernel


@dataclass(frozen=True)
class KernelMachine:
    """A fitted function x -> sum_i coefficients[i] kernel(x, train_x[i]), with the ridge it was fitted with."""

    kernel: Kernel
    train_x: np.ndarray
    coefficients: np.ndarray
    ridge: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Outputs (n,)."""
        return self.kernel(x, self.train_x) @ self.coefficients


def ridge_regression(kernel: Kernel, train: Sample, ridge: float) -> KernelMachine:
    """Kernel ridge regression on the labels train.y; `ridge` is in units of the mean of the kernel's diagonal."""
    gram = kernel(train.x, train.x)
    return KernelMachine(kernel, train.x, _coefficients(gram, train.y, ridge), ridge)


def tuned_ridge(kernel: Kernel, train: Sample, validation: Sample, ridges: Sequence[float] = RIDGES) -> KernelMachine:
    """Kernel ridge regression with the ridge that serves validation best.

    Best is the highest share of right signs on validation.y (labels as a learner has them, noise included), then
    the smallest mean square. The test sample plays no part: tuning on it would flatter the kernel.
    """
    gram, across = kernel(train.x, train.x), kernel(validation.x, train.x)
    fits = [KernelMachine(kernel, train.x, _coefficients(gram, train.y, ridge), ridge) for ridge in ridges]

    def score(fit: KernelMachine) -> tuple[float, float]:
        output = across @ fit.coefficients
        return np.mean(np.sign(output) == validation.y), -np.mean((output - validation.y) ** 2)

    return max(fits, key=score)


def _coefficients(gram: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    return linalg.solve(gram + ridge * np.mean(np.diag(gram)) * np.eye(len(y)), y, assume_a="pos")


def learning_curves(kernel: Kernel, train: Sample, tests: Sequence[Sample], ridges: Sequence[float]) -> np.ndarray:
    """Accuracies of ridge regression on the first 1, 2, .., n training points: shape (ridges, tests, n).

    Accuracy is against clean_y of each test sample. All n fits come at the price of one: with gram + ridge = L L^T,
    the factor of the first k points is the leading block of L, so that the outputs on test points are sums over the
    first k columns of one matrix.
    """
    gram = kernel(train.x, train.x)
    diagonal = np.diag_indices_from(gram)
    across = np.column_stack([train.y, *(kernel(train.x, test.x) for test in tests)])
    clean = np.concatenate([test.clean_y for test in tests])
    ends = np.cumsum([len(test) for test in tests])[:-1]
    curves = []
    for ridge in ridges:
        ridged = gram.copy()
        ridged[diagonal] += ridge * np.mean(gram[diagonal])
        factor = linalg.cholesky(ridged, lower=True, overwrite_a=True, check_finite=False)
        solved = linalg.solve_triangular(factor, across, lower=True, check_finite=False)
        right = np.sign(np.cumsum(solved[:, 1:] * solved[:, :1], axis=0)) == clean
        curves.append([part.mean(axis=1) for part in np.split(right, ends, axis=1)])
    return np.array(curves)


def linear_classifiers(train: Sample) -> dict[str, np.ndarray]:
    """Weights (d,) of linear classifiers sgn(<w, x>) fitted to train.y, without intercept (RFA, Section 1).

    Least squares (of least norm where d > n), logistic regression and a linear support vector machine.
    """
    settings = {"fit_intercept": False, "max_iter": 10_000}
    return {
        "least squares": linalg.lstsq(train.x, train.y)[0],
        "logistic": LogisticRegression(**settings).fit(train.x, train.y).coef_[0],
        "support vectors": LinearSVC(dual="auto", random_state=0, **settings).fit(train.x, train.y).coef_[0],
    }

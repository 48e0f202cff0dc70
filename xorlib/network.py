"""The two-layer ReLU net in both papers' normalisations, and its initialisations."""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Network:
    """f(x) = scale * sum_j second_layer[j] relu(<weights[j], x>), with weights (m, d) and second_layer (m,).

    RFA, equation (1), has scale 1 and second layer +-1/sqrt(m); FTT, equation (2.3), has scale 1/m.
    """

    weights: np.ndarray
    second_layer: np.ndarray
    scale: float = 1.0

    @property
    def width(self) -> int:
        """Number of neurons m (RFA) or p (FTT)."""
        return len(self.second_layer)

    def features(self, x: np.ndarray) -> np.ndarray:
        """Hidden activations relu(<w_j, x_i>), shape (n, m)."""
        pre = x @ self.weights.T
        return np.maximum(pre, 0.0, out=pre)  # in place: a second array of this size costs more than the product

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Outputs f(x_i), shape (n,); in blocks, so that large samples need little memory."""
        block = max(1, 2**22 // max(1, self.width))
        parts = [self.features(x[i : i + block]) @ self.second_layer for i in range(0, len(x), block)]
        return self.scale * np.concatenate(parts) if parts else np.zeros(0)

    def rotate(self, rotation: np.ndarray) -> "Network":
        """The net whose output at x @ rotation.T is this net's output at x; rotation is orthogonal (d, d)."""
        return replace(self, weights=self.weights @ rotation.T)

    def subnetwork(self, neurons: np.ndarray) -> "Network":
        """The net that keeps only the given neurons (mask or indices), f^J of RFA, Section 4.2."""
        return replace(self, weights=self.weights[neurons], second_layer=self.second_layer[neurons])


def fixed_signs(width: int) -> np.ndarray:
    """RFA's second layer (m,): +1/sqrt(m) on the first half, -1/sqrt(m) on the second, 0 on an odd last one."""
    half = width // 2
    return np.repeat([1.0, -1.0, 0.0], [half, half, width % 2]) / np.sqrt(width)


def fixed_second_layer(width: int, dimension: int, init_variance: float, rng: np.random.Generator) -> Network:
    """RFA's initial net (Section 2): weights N(0, init_variance), second layer +-1/sqrt(m), never trained."""
    return Network(rng.normal(0.0, np.sqrt(init_variance), (width, dimension)), fixed_signs(width))


def both_layers(width: int, dimension: int, init_scale: float, rng: np.random.Generator) -> Network:
    """FTT's initial net (Section 2.2): w_j uniform on the sphere of radius init_scale, a_j = +-init_scale."""
    weights = rng.standard_normal((width, dimension))
    weights *= init_scale / np.linalg.norm(weights, axis=1, keepdims=True)
    return Network(weights, init_scale * rng.choice([-1.0, 1.0], width), 1.0 / width)


def four_neuron_net(directions: np.ndarray) -> Network:
    """The ideal net |<mu1, x>| - |<mu2, x>| of RFA, equation (2); directions (2, d) are mu1, mu2."""
    mu1, mu2 = np.asarray(directions, dtype=float)
    return Network(np.stack([mu1, -mu1, mu2, -mu2]), np.array([1.0, 1.0, -1.0, -1.0]))

"""One figure style, and the figures that several chapters draw."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from .data import Sample
from .network import Network

# Blue and vermilion of the Okabe-Ito palette: told apart by every common colour vision, and by lightness in grey.
POSITIVE, NEGATIVE, FLIPPED = "#0072B2", "#D55E00", "#000000"
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
CLUSTER_NAMES = (r"$+\mu_1$", r"$-\mu_1$", r"$+\mu_2$", r"$-\mu_2$")


def use_style() -> None:
    """Set matplotlib's defaults: opaque white, sized for the book's column, no top and right spines."""
    plt.rcParams.update(
        {
            "figure.dpi": 110,
            "figure.facecolor": "white",
            "savefig.facecolor": "white",
            "savefig.transparent": False,
            "figure.figsize": (7.0, 3.6),
            "figure.constrained_layout.use": True,
            "axes.prop_cycle": plt.cycler(color=COLOURS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "font.size": 10,
            "legend.frameon": False,
            "lines.linewidth": 1.8,
        }
    )


def draw_regions(ax, net: Network, extent: float = 1.75, resolution: int = 301) -> None:
    """Shade where f > 0 and f < 0 on the square [-extent, extent]^2 of span(mu1, mu2) = the first two axes."""
    axis = np.linspace(-extent, extent, resolution)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    plane = Network(net.weights[:, :2], net.second_layer, net.scale)
    values = plane(grid).reshape(resolution, resolution)
    ax.imshow(
        np.sign(values), origin="lower", extent=(-extent, extent, -extent, extent), vmin=-1, vmax=1,
        cmap=ListedColormap(["#F6C9A8", "white", "#A9CCE6"]), interpolation="nearest", zorder=0)  # fmt: skip
    if values.min() < 0 < values.max():
        ax.contour(axis, axis, values, levels=[0.0], colors="black", linewidths=1.2)
    ax.set(aspect="equal", xlim=(-extent, extent), ylim=(-extent, extent))
    for side in ("top", "right"):
        ax.spines[side].set_visible(True)


def draw_points(ax, sample: Sample, per_cluster: int = 28) -> None:
    """The first points of each cluster: triangles for label +1, circles for -1, flipped ones on top, outlined."""
    shown = np.concatenate([np.flatnonzero(sample.cluster == c)[:per_cluster] for c in range(4)])
    for flipped in (False, True):
        for label, marker, colour in ((1, "^", POSITIVE), (-1, "o", NEGATIVE)):
            picked = shown[(sample.y[shown] == label) & (sample.noisy[shown] == flipped)]
            name = f"label {'+1' if label > 0 else '-1'}{', flipped' if flipped else ''}"
            ax.scatter(
                *sample.x[picked, :2].T, marker=marker, s=52 if flipped else 20, color=colour, label=name,
                edgecolors=FLIPPED if flipped else "white", linewidths=1.5 if flipped else 0.4,
                zorder=4 if flipped else 3)  # fmt: skip

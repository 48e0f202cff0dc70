"""One figure style, the figures that several chapters draw, and a figure's data in a few numbers."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import cm, collections, contour, image, lines, patches, text, ticker
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_hex
from matplotlib.figure import Figure, FigureBase
from matplotlib.legend import Legend

from .data import Sample
from .network import Network
from .outputs import FIGURE_MIME, TINY, short

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


def describe_shown_figures(shell) -> None:
    """Have an IPython shell attach `describe` to each figure it shows, beside the image."""
    from IPython.core.formatters import JSONFormatter

    formatter = JSONFormatter(parent=shell.display_formatter, format_type=FIGURE_MIME, print_method="_no_such_method_")
    formatter.for_type(FigureBase, describe)  # its base class, since the inline backend unregisters Figure itself
    shell.display_formatter.formatters[FIGURE_MIME] = formatter


def describe(figure: Figure) -> dict:
    """What a figure shows, for a comparison across processors: its words, and each artist's data in a few numbers.

    Two drawings of the same data are described alike at any font or resolution. A row of numbers holds the first, last,
    smallest, largest and mean value, to four digits of the largest in size, as drawn: log10 on a logarithmic axis.
    """
    words = [found.get_text() for found in figure.texts]
    legends = [[entry.get_text() for entry in legend.get_texts()] for legend in figure.legends]
    return {"axes": [_axes(ax) for ax in figure.axes], "texts": words, "legends": legends}


def _row(values) -> list:
    """First, last, smallest, largest, mean, all in one unit of rounding: a mean of nearly 0 is mostly noise."""
    values = np.asarray(values, dtype=float).ravel()
    values = values[np.isfinite(values)]
    if not values.size:
        return []
    return _rounded([values[0], values[-1], values.min(), values.max(), values.mean()])


def _rounded(values) -> list:
    largest = max(map(abs, values))
    digits = 3 - int(np.floor(np.log10(largest))) if largest >= TINY else 0
    return [round(float(value), digits) + 0.0 for value in values]  # + 0.0: no -0.0


def _shown(ax: Axes, xy) -> np.ndarray:
    """Points (n, 2) on the axes' scales; nan where a logarithmic one cannot show them."""
    xy = np.ma.filled(np.ma.asarray(xy, dtype=float).reshape(-1, 2), np.nan)
    shown = ax.transScale.transform_non_affine(xy)
    return np.where(shown <= -1000, np.nan, shown)  # matplotlib's stand-in for the logarithm of what is not positive


def _points(ax: Axes, xy) -> dict:
    shown = _shown(ax, xy)
    return {"points": len(shown), "x": _row(shown[:, 0]), "y": _row(shown[:, 1])}


def _place(xy) -> dict:
    return {"x": [short(xy[0])], "y": [short(xy[1])]}  # apart: one of them may be far larger


def _colours(rgba) -> list:
    return list(dict.fromkeys(to_hex(colour, keep_alpha=True) for colour in rgba))


def _axes(ax: Axes) -> dict:
    legend = ax.get_legend()
    kept = {
        "title": [ax.get_title(where) for where in ("left", "center", "right")],
        "labels": [ax.get_xlabel(), ax.get_ylabel()],
        "scales": [ax.get_xscale(), ax.get_yscale()],
        "limits": [_rounded(ends) for ends in _shown(ax, [*zip(ax.get_xlim(), ax.get_ylim(), strict=True)]).T],
        "ticks": [_tick_words(ax.xaxis), _tick_words(ax.yaxis)],
        "legend": [entry.get_text() for entry in legend.get_texts()] if legend else [],
    }  # fmt: skip
    frame = [ax.patch, ax.xaxis, ax.yaxis, ax.title, ax._left_title, ax._right_title, *ax.spines.values()]
    drawn = [artist for artist in ax.get_children() if artist not in frame and artist.get_visible()]
    kept["artists"] = [_artist(ax, artist) for artist in drawn if not isinstance(artist, Axes | Legend)]
    return kept


def _tick_words(axis) -> list:
    """The words given to ticks, or its categories; numbers that matplotlib chooses depend on the font's size."""
    if isinstance(axis.get_major_formatter(), ticker.FixedFormatter):
        return [str(word) for word in axis.get_major_formatter().seq]
    return list(getattr(axis.units, "_mapping", []))


def _artist(ax: Axes, artist) -> dict:
    label = str(artist.get_label())
    kept = {"kind": type(artist).__name__, "label": "" if label.startswith("_") else label}
    if isinstance(artist, cm.ScalarMappable) and artist.get_array() is not None:
        values = np.ma.filled(np.ma.asarray(artist.get_array(), dtype=float), np.nan)
        kept |= {"values": _row(values), "shape": list(values.shape), "colour limits": _rounded(artist.get_clim())}
        kept |= {"colours": _colours(artist.get_cmap()([0.0, 0.5, 1.0]))}
    if isinstance(artist, image.AxesImage):
        kept |= {"x": _rounded(artist.get_extent()[:2]), "y": _rounded(artist.get_extent()[2:])}
    elif isinstance(artist, lines.AxLine):
        kept |= _place(artist.get_xy1()) | {"slope": artist.get_slope(), "colours": [to_hex(artist.get_color())]}
    elif isinstance(artist, lines.Line2D):
        style = [artist.get_linestyle(), str(artist.get_marker())]
        kept |= _points(ax, artist.get_xydata()) | {"colours": [to_hex(artist.get_color())], "style": style}
    elif isinstance(artist, collections.Collection):
        offsets = artist.get_offsets() if isinstance(artist, collections.PathCollection) else None
        paths = [path.vertices for path in artist.get_paths()]
        kept |= _points(ax, np.concatenate(paths or [np.empty((0, 2))]) if offsets is None else offsets)
        if isinstance(artist, contour.ContourSet):  # a zero of the surface, up to rounding, is another corner or none
            kept |= {"points": None, "x": kept["x"][2:4], "y": kept["y"][2:4]}
        elif "colours" not in kept:
            kept["colours"] = _colours([*artist.get_facecolor(), *artist.get_edgecolor()])
    elif isinstance(artist, text.Text):
        kept |= {"text": artist.get_text(), "colours": [to_hex(artist.get_color())]}
        kept |= _place(artist.xy if isinstance(artist, text.Annotation) else artist.get_position())
    elif isinstance(artist, patches.Patch):
        path = artist.get_patch_transform().transform(artist.get_path().vertices)
        kept |= _points(ax, path) | {"colours": _colours([artist.get_facecolor(), artist.get_edgecolor()])}
    return kept

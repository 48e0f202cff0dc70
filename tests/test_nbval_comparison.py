"""The comparison of stored outputs with a fresh run: what it must notice, and what it must let pass."""

import copy

import matplotlib.pyplot as plt
import numpy as np
import pytest

from xorlib import outputs, plots

ROW = [1.0, 3.0, 1.0, 3.0, 0.002]
STORED = [
    {"output_type": "stream", "name": "stdout", "text": "12 runs of 20\n"},
    {"output_type": "execute_result", "metadata": {}, "data": {
        "text/plain": "rfa.lemma | reproduced | share 0.9375 (>= 0.9), error 2.2e-16 | 5 seeds",
        "text/html": "<td>0.9375</td><td class='x1'>1.5</td>",
        "application/vnd.xorlib.claim+json": {"verdict": "reproduced", "measured": {"share": 0.9375, "none": None}}}},
    {"output_type": "display_data", "metadata": {"scrapbook": {"name": "share"}},
     "data": {"application/papermill.record/text/plain": "93.75"}},
    {"output_type": "display_data", "metadata": {}, "data": {
        "text/plain": "<Figure size 770x396 with 1 Axes>", "image/png": "iVBORw0KGgo",
        outputs.FIGURE_MIME: {"axes": [{"artists": [{"points": 30, "x": ROW, "colours": ["#0072b2"]}]}]}}},
]  # fmt: skip


def changed(path, value):
    """STORED with one value replaced."""
    fresh = copy.deepcopy(STORED)
    place = fresh
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return fresh


FIGURE = (3, "data", outputs.FIGURE_MIME, "axes", 0, "artists", 0)
TEXT = STORED[1]["data"]["text/plain"]
HTML = STORED[1]["data"]["text/html"]
CLAIM = (1, "data", "application/vnd.xorlib.claim+json")


@pytest.mark.parametrize(
    "path, value",
    [
        ((0, "text"), "13 runs of 20\n"),
        ((0, "name"), "stderr"),
        ((1, "data", "text/plain"), TEXT.replace("0.9375", "0.9475")),
        ((1, "data", "text/plain"), TEXT.replace("0.9375", "-0.9375")),
        ((1, "data", "text/plain"), TEXT.replace("| reproduced", "| not reproduced")),
        ((1, "data", "text/plain"), TEXT.replace("2.2e-16", "2.2e-10")),
        ((1, "data", "text/plain"), TEXT.replace("0.9375", "nan")),
        ((1, "data", "text/plain"), TEXT.replace("0.9375", "0.9375 0.9375")),
        ((1, "data", "text/html"), HTML.replace("1.5", "1.6")),
        ((1, "data", "text/html"), HTML.replace("x1", "x2")),
        ((1, "data"), {key: value for key, value in STORED[1]["data"].items() if key != "text/html"}),
        ((*CLAIM, "verdict"), "not reproduced"),
        ((*CLAIM, "measured", "share"), 0.9475),
        ((*CLAIM, "measured", "none"), 0.0),
        ((2, "data", "application/papermill.record/text/plain"), "93.95"),
        ((2, "metadata", "scrapbook", "name"), "rate"),
        ((3, "data", "image/png"), None),
        ((*FIGURE, "x", 1), 3.01),
        ((*FIGURE, "points"), 31),
        ((*FIGURE, "colours", 0), "#0072b3"),
    ],
)
def test_a_change_is_noticed(path, value):
    fresh = changed(path, value)
    if value is None and path[-1] == "image/png":  # an image without its data, on both sides, is compared itself
        del fresh[3]["data"][outputs.FIGURE_MIME]
        stored = copy.deepcopy(fresh)
        fresh[3]["data"]["image/png"] = "iVBORw0KGgp"
        assert outputs.difference(stored, fresh)
    else:
        assert outputs.difference(STORED, fresh)


@pytest.mark.parametrize("fresh", [STORED[1:], [*STORED, STORED[0]], [STORED[1], STORED[0], *STORED[2:]], []])
def test_a_missing_extra_or_moved_output_is_noticed(fresh):
    assert outputs.difference(STORED, fresh)


@pytest.mark.parametrize(
    "path, value",
    [
        ((1, "data", "text/plain"), TEXT.replace("0.9375", "0.9376").replace("2.2e-16", "0")),
        ((1, "data", "text/plain"), TEXT.replace(" 0.9375", "  0.938")),
        ((*CLAIM, "measured", "share"), 0.9374),
        ((2, "data", "application/papermill.record/text/plain"), "93.76"),
        ((3, "data", "image/png"), "iVBORw0KGgp"),
        ((*FIGURE, "x"), [1.0, 3.001, 1.0, 3.001, 0.003]),
    ],
)
def test_rounding_on_the_other_side_of_an_edge_passes(path, value):
    assert outputs.difference(STORED, changed(path, value)) is None


def test_equal_outputs_are_equal():
    assert outputs.difference(STORED, copy.deepcopy(STORED)) is None


def drawing(dpi=100, size=10, shift=0.0, colour="C0", bars=3, word="a"):
    with plt.rc_context({"font.size": size, "figure.dpi": dpi}):
        figure, ax = plt.subplots()
        x = np.arange(1, 9.0)
        ax.plot(x, x**2 + shift, color=colour, label="square")
        ax.scatter(x, x, c=x)
        ax.bar(x[:bars], x[:bars])
        ax.fill_between(x, x, 2 * x)
        ax.contour(x, x, np.add.outer(x, x), levels=[5.0])
        ax.axline((0, 0), slope=1)
        ax.text(2, 30, word)
        ax.set(xscale="log", xlabel="n")
        ax.set_xticks([1, 2], labels=["one", "two"])
        ax.legend()
        axis = figure.add_axes((0.1, 0.1, 0.2, 0.2))
        axis.imshow(np.outer(x, x))
        figure.canvas.draw()
        described = plots.describe(figure)
        plt.close(figure)
    return described


def test_a_figure_is_described_by_its_data_alone():
    assert drawing() == drawing(dpi=140, size=13)
    for change in ({"shift": 0.5}, {"colour": "C1"}, {"bars": 2}, {"word": "b"}):
        assert outputs.difference(drawing(), drawing(**change)), change

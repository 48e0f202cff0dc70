"""Generated refusals: for every model and field, a NaN, a word and values beyond each side of its range."""

import ast
from functools import cache
from pathlib import Path
from typing import Annotated, get_args, get_origin

import jupytext
import pytest

from xorlib import parameters

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"


@cache
def defaults(name):
    """The values in a notebook's own parameters cell."""
    cells = jupytext.read(NOTEBOOKS / f"{name}.md").cells
    source = next(cell.source for cell in cells if "parameters" in cell.metadata.get("tags", []))
    return {node.target.id: ast.literal_eval(node.value) for node in ast.parse(source).body}


def beyond(kind, metadata):
    """Values just outside of a number's range; for a list, outside of its items' range, and one too few of them."""
    limits = {type(m).__name__: m for m in metadata}
    step = 1 if kind is int else 1e-3
    if "Ge" in limits:
        yield limits["Ge"].ge - step
    if "Gt" in limits:
        yield limits["Gt"].gt
    if "Le" in limits:
        yield limits["Le"].le + step * max(1, abs(limits["Le"].le) if kind is float else 1)
    if "Lt" in limits:
        yield limits["Lt"].lt


def cases():
    for name, model in parameters.MODELS.items():
        given = defaults(name)
        for field, info in model.model_fields.items():
            yield name, field, "word"
            if get_origin(info.annotation) is not tuple:
                yield name, field, float("nan")
                for value in beyond(info.annotation, info.metadata):
                    yield name, field, value
                continue
            yield name, field, [float("nan")] * len(given[field])
            yield name, field, given[field][: next(m.min_length for m in info.metadata) - 1]
            item = get_args(info.annotation)[0]
            kind, *metadata = get_args(item) if get_origin(item) is Annotated else (item,)
            for value in beyond(kind, [m for part in metadata for m in part.metadata]):
                yield name, field, [value, *given[field][1:]]


CASES = list(cases())


def test_every_numeric_field_has_a_limit_on_each_side():
    sides = {(name, field): sum(1 for n, f, v in CASES if (n, f) == (name, field)) for name, field, _ in CASES}
    words = {"preset", "law"}
    assert [key for key, count in sides.items() if key[1] not in words and count < 4] == []


@pytest.mark.parametrize("name", parameters.MODELS)
def test_the_defaults_are_accepted(name):
    for preset in ("quick", "paper"):
        parameters.MODELS[name].from_notebook(defaults(name) | {"preset": preset})


@pytest.mark.parametrize(("name", "field", "value"), CASES)
def test_a_bad_value_is_refused_in_one_line_that_names_the_field(name, field, value):
    with pytest.raises(parameters.ParameterError) as refusal:
        parameters.MODELS[name].from_notebook(defaults(name) | {field: value})
    line = str(refusal.value)
    assert line.startswith(f"{field} = ") and ": must be " in line and "\n" not in line


def test_sizes_with_unequal_flips_are_refused_by_name():
    bad = {"small_num_train": 42, "noise_rate": 0.1}  # clusters of 11, 11, 10, 10 points: 1 flip in each
    parameters.MODELS["05_interpolation"].from_notebook(defaults("05_interpolation") | bad)
    with pytest.raises(parameters.ParameterError, match=r"^small_num_train = 42: .* a multiple of 4 .* such as 44$"):
        parameters.MODELS["05_interpolation"].from_notebook(defaults("05_interpolation") | bad | {"noise_rate": 0.19})

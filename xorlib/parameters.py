"""One checked model of parameters a notebook; the defaults stand in the notebook's own parameters cell."""

import difflib
import json
import math
from types import ModuleType
from typing import Annotated, ClassVar, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

MEMORY_LIMIT = 8 * 2**30  # bytes; a larger run is refused before any work


class ParameterError(ValueError):
    """A refused parameter: one line with its name, its value and what is allowed."""

    def _render_traceback_(self) -> list[str]:
        # Jupyter and papermill ask for this: the reader needs the line, not our call stack.
        return [f"ParameterError: {self}"]


class NotebookParameters(BaseModel):
    """Checks shared by every notebook: no unknown name, right types, ranges, memory; values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    notebook: ClassVar[str]
    # What preset "paper" uses: name -> (the parameters cell's value, the published scale). A value that the
    # reader has changed stays as given.
    paper_scale: ClassVar[dict[str, tuple]] = {}
    # Sizes of the large arrays, as products of parameter names and numbers of float64 entries.
    arrays: ClassVar[tuple[tuple[str | int, ...], ...]] = ()

    preset: Literal["quick", "paper"]
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)]

    @field_validator("*", mode="before")
    @classmethod
    def _plain_forms(cls, value, info):
        """Turn the forms that papermill makes ("1e-3", "false", 1e5 for an int, "[1, 2]") into the declared type."""
        return _converted(value, cls.model_fields[info.field_name].annotation)

    @classmethod
    def from_notebook(cls, namespace: dict):
        """The checked parameters in a notebook's globals(), right after its parameters cells.

        Raises ParameterError with one line for an unknown name, a wrong type, a value out of range, a size that
        would exhaust memory or a combination that makes no sense.
        """
        given = {name: value for name, value in namespace.items() if _is_parameter(name, value)}
        for name in given.keys() - cls.model_fields.keys():
            near = difflib.get_close_matches(name, cls.model_fields, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            known = ", ".join(cls.model_fields)
            raise ParameterError(f"{name} = {given[name]!r}: no such parameter; {hint}allowed are {known}")
        if given.get("preset") == "paper":
            given |= {k: paper for k, (quick, paper) in cls.paper_scale.items() if given.get(k) == quick}
        try:
            checked = cls(**given)
        except ValidationError as error:
            first = error.errors()[0]
            name = first["loc"][0]
            given_value = "not given" if first["type"] == "missing" else repr(given.get(name))
            raise ParameterError(f"{name} = {given_value}: must be {cls.allowed(name)}") from None
        checked._check_memory()
        if problem := checked.problem():
            raise ParameterError(problem)
        return checked

    def problem(self) -> str | None:
        """A line that says which combination of values makes no sense, or None; models override it."""

    def _check_memory(self) -> None:
        for factors in self.arrays:
            sizes = {f: len(v) * max(v) if isinstance(v := getattr(self, f), tuple) else v
                     for f in factors if isinstance(f, str)}  # fmt: skip
            needed = 8 * math.prod(sizes.values()) * math.prod(f for f in factors if isinstance(f, int))
            if needed > MEMORY_LIMIT:
                name = max(sizes, key=sizes.get)
                raise ParameterError(
                    f"{name} = {getattr(self, name)}: {' x '.join(sizes)} needs about {needed / 2**30:,.0f} GiB, "
                    f"more than the {MEMORY_LIMIT / 2**30:.0f} GiB allowed; at most "
                    f"{int(sizes[name] * MEMORY_LIMIT / needed)} with the other sizes as given"
                )

    @classmethod
    def allowed(cls, name: str) -> str:
        """The type and range of a parameter in words, such as "a whole number from 1 to 1000"."""
        field = cls.model_fields[name]
        kind, limits = field.annotation, {type(m).__name__: m for m in field.metadata}
        low = next((f"{word} {getattr(limits[k], k.lower())}" for k, word in (("Ge", "from"), ("Gt", "above"))
                    if k in limits), "")  # fmt: skip
        high = next((f"{word} {getattr(limits[k], k.lower())}" for k, word in (("Le", "to"), ("Lt", "below"))
                     if k in limits), "")  # fmt: skip
        if get_origin(kind) is Literal:
            return "one of " + ", ".join(map(repr, get_args(kind)))
        if get_origin(kind) is tuple:
            item = get_args(kind)[0]
            inner = {type(m).__name__: m for m in getattr(item, "__metadata__", (Field(),))[0].metadata}
            item_kind = get_args(item)[0] if get_origin(item) is Annotated else item
            span = f" from {inner['Ge'].ge} to {inner['Le'].le}" if {"Ge", "Le"} <= inner.keys() else ""
            fewest = f"at least {limits['MinLen'].min_length} " if "MinLen" in limits else ""
            return f"a list of {fewest}{'whole numbers' if item_kind is int else 'numbers'}{span}"
        words = {int: "a whole number", float: "a finite number", bool: "true or false", str: "a word"}[kind]
        return " ".join(part for part in (words, low, high) if part)


def _is_parameter(name: str, value) -> bool:
    """Whether a global of a notebook is a parameter: plain values only, and none of IPython's own names."""
    if name.startswith("_") or name in ("In", "Out", "exit", "quit", "get_ipython", "open"):
        return False
    return not isinstance(value, ModuleType) and not callable(value)


def _converted(value, kind):
    if isinstance(value, bool):
        # Python counts True as 1; a reader who writes it for a number has made a mistake.
        return value if kind is bool else f"{value}"
    if kind is bool and isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower(), value)
    if get_origin(kind) is tuple:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                return value
        item = get_args(get_args(kind)[0])[0] if get_origin(get_args(kind)[0]) is Annotated else get_args(kind)[0]
        return tuple(_converted(v, item) for v in value) if isinstance(value, list | tuple) else value
    if kind in (int, float) and isinstance(value, str):
        try:
            value = float(value) if kind is float or not value.lstrip("+-").isdigit() else int(value)
        except ValueError:
            return value
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # a string is of the wrong type, so it is refused
    return value


Size = Annotated[int, Field(ge=1, le=10_000_000)]
Width = Annotated[int, Field(ge=2, le=1_000_000)]
Seeds = Annotated[int, Field(ge=1, le=100_000)]
Rate = Annotated[float, Field(ge=0, lt=0.5)]
Positive = Annotated[float, Field(gt=0, le=1e6)]


class DecisionBoundary(NotebookParameters):
    """RFA, Figure 1."""

    notebook = "01_decision_boundary"
    arrays = (("num_train", "dimension", 3), ("width", "dimension", 3), ("num_test", "dimension", 3))

    num_train: Annotated[int, Field(ge=40, le=10_000_000)]
    num_test: Size
    dimension: Annotated[int, Field(ge=2, le=100_000)]
    width: Width
    noise_rate: Rate
    cluster_variance: Positive
    law: Literal["gaussian", "uniform", "laplace"]
    init_variance: Positive
    step_size: Positive
    num_steps: Annotated[int, Field(ge=6, le=100_000_000)]
    num_seeds: Seeds


MODELS = {model.notebook: model for model in NotebookParameters.__subclasses__()}

"""One checked model of parameters a notebook; the defaults stand in the notebook's own parameters cell."""

import ast
import difflib
import json
import math
from types import ModuleType
from typing import Annotated, ClassVar, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator

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
    # reader has given stays as given.
    paper_scale: ClassVar[dict[str, tuple]] = {}
    # Sizes of the large arrays, as products: names of parameters (of a list its largest value counts) or of properties
    # of the model, and numbers. A product gives float64 entries, with the temporaries of the step that needs most.
    arrays: ClassVar[tuple[tuple[str | float, ...], ...]] = ()

    preset: Literal["quick", "paper"]
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)]
    _given: frozenset[str] = PrivateAttr(frozenset())  # the names that papermill's -p set, the preset included

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
        by_reader = _injected(namespace.get("In", []))
        if given.get("preset") == "paper":
            scaled = cls._scaled(given, by_reader)
            for name, value in scaled.items():
                print(f"preset paper: {name} = {value}, not {given[name]}")
            given |= scaled
        try:
            checked = cls(**given)
        except ValidationError as error:
            first = error.errors()[0]
            name = first["loc"][0]
            given_value = "not given" if first["type"] == "missing" else repr(given.get(name))
            raise ParameterError(f"{name} = {given_value}: must be {cls.allowed(name)}") from None
        checked._given = by_reader
        checked._check_memory()
        if problem := checked.problem():
            raise ParameterError(problem)
        return checked

    @classmethod
    def _scaled(cls, given: dict, by_reader: frozenset[str]) -> dict:
        return {name: paper for name, (quick, paper) in cls.paper_scale.items()
                if name not in by_reader and _same(given.get(name), quick)}  # fmt: skip

    def at_paper_scale(self):
        """These parameters as preset "paper" would have them."""
        if self.preset == "paper":
            return self
        scaled = self._scaled(self.model_dump(mode="json"), self._given)
        return type(self)(**self.model_dump() | scaled | {"preset": "paper"})

    def is_the_books(self) -> bool:
        """Whether no parameter but the preset was given by the reader."""
        return self._given <= {"preset"}

    def problem(self) -> str | None:
        """A line that says which combination of values makes no sense, or None; models override it."""

    def _check_memory(self) -> None:
        """Refuse a run of which one product in `arrays` passes the limit, in one process.

        What python needs for itself, and several products at once, may come to a few times as much.
        """
        for factors in self.arrays:
            names = [f for f in factors if isinstance(f, str)]
            sizes = {name: max(v) if isinstance(v := getattr(self, name), tuple) else v for name in names}
            needed = 8 * math.prod(sizes[f] if isinstance(f, str) else f for f in factors)
            if needed > MEMORY_LIMIT:
                name = max(sizes.keys() & type(self).model_fields.keys(), key=lambda n: (sizes[n], n))
                most = int(sizes[name] * (MEMORY_LIMIT / needed) ** (1 / names.count(name)))
                raise ParameterError(
                    f"{name} = {getattr(self, name)}: {' x '.join(names)} needs about {needed / 2**30:,.1f} GiB, "
                    f"more than the {MEMORY_LIMIT / 2**30:g} GiB allowed; at most {most} with the others as given"
                )

    @classmethod
    def allowed(cls, name: str) -> str:
        """The type and range of a parameter in words, such as "a whole number from 1 to 1000"."""
        field = cls.model_fields[name]
        kind, limits = field.annotation, {type(m).__name__: m for m in field.metadata}
        low = next((f"{word} {getattr(limits[k], k.lower())}" for k, word in (("Ge", "from"), ("Gt", "above"))
                    if k in limits), "")  # fmt: skip
        high = next((f"{word} {getattr(limits[k], k.lower())}" for k, word in (
            ("Le", "to" if "Ge" in limits else "and at most"), ("Lt", "and below")) if k in limits), "")  # fmt: skip
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


def _same(value, quick) -> bool:
    return tuple(value) == tuple(quick) if isinstance(value, list | tuple) else value == quick


def _injected(cells: list[str]) -> frozenset[str]:
    """The names set in the cell that papermill adds below the parameters cell."""
    names = set()
    for cell in cells:
        if cell.startswith("# Parameters"):
            names |= {target.id for node in ast.parse(cell).body if isinstance(node, ast.Assign)
                      for target in node.targets}  # fmt: skip
    return frozenset(names)


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
BOOTSTRAP = 10_000  # resamples of measure.bootstrap_interval, which holds two arrays of resamples x values


def _theorem_steps(step_size: float) -> int:
    return 1 + int(min(1 / (4 * step_size), 1e15) + 1e-9)  # theory.theorem_steps, without the imports


class DecisionBoundary(NotebookParameters):
    """RFA, Figure 1."""

    notebook = "01_decision_boundary"
    paper_scale = {"num_seeds": (60, 120)}
    arrays = (
        ("num_train", "dimension", 6), ("num_test", "dimension", 5), ("num_train", 12), ("num_test", 12),
        ("width", "dimension", 55),  # the net of every recorded step
        ("num_test", "width", "gram_form", 2), ("num_seeds", BOOTSTRAP, 2), ("num_seeds", "early_steps", 3),
    )  # fmt: skip

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

    @property
    def gram_form(self) -> int:
        """1 where training holds all test points' pre-activations, 0 where it goes through them in blocks."""
        return int(self.dimension > self.num_train)

    @property
    def early_steps(self) -> int:
        """Recorded steps of each run over seeds."""
        return min(2 * _theorem_steps(self.step_size), self.num_steps) + 1


class _Clusters(NotebookParameters):
    """What the chapters on RFA's proof share: sizes by the quantities that the assumptions bound."""

    num_train: Annotated[int, Field(ge=40, le=1_000_000)]
    dimension: Annotated[int, Field(ge=2, le=1_000_000)]
    width: Annotated[int, Field(ge=4, le=1_000_000)]
    noise_rate: Rate
    noise_radius: Positive
    law: Literal["gaussian", "uniform", "laplace"]
    init_norm: Positive
    num_seeds: Seeds


class OneStepAmplification(_Clusters):
    """RFA, Lemmas 4.1 to 4.4 and 4.10, Proposition 3.2."""

    notebook = "02_one_step_amplification"
    paper_scale = {"num_seeds": (100, 1000), "sweep_seeds": (5, 30)}
    arrays = (
        ("num_train", "dimension", 6), ("num_train", "dimensions", 4), ("width", "dimension", 10),
        ("width", "dimensions", 5), ("num_train", "width", 6), ("dimension", 2000, 3), ("width", 2000, 2),
        ("sweep_seeds", BOOTSTRAP, 2),
    )  # fmt: skip

    dimensions: Annotated[tuple[Annotated[int, Field(ge=2, le=1_000_000)], ...], Field(min_length=3)]
    step_size: Annotated[float, Field(gt=0, le=1000)]
    capture_constants: Annotated[tuple[Annotated[float, Field(ge=1, le=1_000_000)], ...], Field(min_length=1)]
    delta: Annotated[float, Field(gt=0, lt=0.5)]
    sweep_seeds: Annotated[int, Field(ge=2, le=10_000)]

    def problem(self) -> str | None:
        if len(set(self.dimensions)) < 3:
            return f"dimensions = {list(self.dimensions)}: a slope needs at least 3 different dimensions"
        if max(self.capture_constants) <= 1:
            return f"capture_constants = {list(self.capture_constants)}: the largest C0 must exceed 1 (Lemma 4.2)"


class Alignment(_Clusters):
    """RFA, Conditions 4.7 and 4.8, Lemmas 4.6, 4.9, 4.11 and A.1."""

    notebook = "03_alignment"
    paper_scale = {"num_seeds": (60, 500), "sweep_seeds": (20, 200)}
    arrays = (
        ("num_train", "dimension", 5), ("num_train", "width", 6), ("width", "dimension", "kept_nets"),
        ("dimension", 4000, 3), ("num_seeds", "kept_nets", 12),
    )  # fmt: skip

    step_size: Annotated[float, Field(gt=0, le=0.25)]
    num_steps: Annotated[int, Field(ge=6, le=10_000_000)]
    capture_constant: Annotated[float, Field(gt=1, le=1_000_000)]
    delta: Annotated[float, Field(gt=0, lt=0.25)]
    sweep_seeds: Annotated[int, Field(ge=2, le=100_000)]

    @property
    def kept_nets(self) -> int:
        """Nets alive at once: the long run's and a seed's, every step up to T, and four being worked on."""
        return 2 * (_theorem_steps(self.step_size) + 1) + 14 + 4

    def problem(self) -> str | None:
        if self.num_steps * self.step_size < 0.25 + self.step_size:
            return (f"num_steps = {self.num_steps}: the long run must pass T = 1 + 1/(4 step_size), "
                    f"{1 + 0.25 / self.step_size:g} for step_size = {self.step_size:g}")  # fmt: skip


class RotationInvariance(NotebookParameters):
    """FTT, Appendix F."""

    notebook = "10_rotation_invariance"
    paper_scale = {"num_seeds": (10, 50)}
    arrays = (("num_seeds", 100, BOOTSTRAP, 2), ("error_dimensions", 8, "error_dimensions", 8, 5),
              ("search_dimensions", "search_dimensions", 4), ("width", "dimension", 2400, 6))  # fmt: skip

    dimension: Annotated[int, Field(ge=12, le=18)]
    num_train: Annotated[int, Field(ge=2, le=5)]
    range_dimensions: Annotated[tuple[Annotated[int, Field(ge=8, le=72)], ...], Field(min_length=1)]
    search_dimensions: Annotated[tuple[Annotated[int, Field(ge=16, le=4096)], ...], Field(min_length=2)]
    error_dimensions: Annotated[tuple[Annotated[int, Field(ge=4, le=512)], ...], Field(min_length=1)]
    width: Annotated[int, Field(ge=4, le=500)]
    init_scale: Annotated[float, Field(gt=0, le=1)]
    step_size: Annotated[float, Field(gt=0, le=0.5)]
    num_steps: Annotated[int, Field(ge=10, le=2000)]
    num_seeds: Annotated[int, Field(ge=3, le=1000)]

    def problem(self) -> str | None:
        if 3 * self.num_train > self.dimension:
            return (f"num_train = {self.num_train}: must be at most a third of dimension = {self.dimension}, or no "
                    "two points look alike")  # fmt: skip


class PopulationDynamics(NotebookParameters):
    """FTT's dynamics at any dimension."""

    notebook = "11_population_dynamics"
    paper_scale = {"width": (2000, 8000), "num_seeds": (5, 20)}
    arrays = (("real_width", "real_dimensions", 8), ("real_width", 1024, 8),
              ("real_width", "real_steps", "kept_histories", 4), ("num_seeds", BOOTSTRAP, 2))  # fmt: skip

    width: Annotated[int, Field(ge=200, le=100_000)]
    init_scale: Annotated[float, Field(ge=1e-4, le=0.5)]
    step_size: Annotated[float, Field(ge=0.005, le=0.25)]
    log10_dimensions: Annotated[tuple[Annotated[int, Field(ge=1, le=15)], ...], Field(min_length=4)]
    noise: Annotated[float, Field(ge=0.1, le=0.5)]
    real_dimensions: Annotated[tuple[Annotated[int, Field(ge=16, le=500)], ...], Field(min_length=1)]
    real_width: Annotated[int, Field(ge=20, le=10_000)]
    real_noise: Annotated[float, Field(ge=1e-3, le=0.1)]
    num_seeds: Annotated[int, Field(ge=3, le=1000)]

    @property
    def real_steps(self) -> int:
        """The most steps of a run of real SGD, each with four numbers a neuron."""
        return int(120 / self.step_size)

    @property
    def kept_histories(self) -> int:
        """One for each real dimension, the current run's, the path beside it and the lines drawn of both."""
        return len(set(self.real_dimensions)) + 4

    def problem(self) -> str | None:
        if len(set(self.log10_dimensions)) < len(self.log10_dimensions):
            return f"log10_dimensions = {list(self.log10_dimensions)}: must be different, or no line can be fitted"


class Generalization(NotebookParameters):
    """RFA, Theorem 3.1 and what surrounds it."""

    notebook = "04_generalization"
    arrays = (
        ("num_train", "dimension", 4), ("width", "dimension", 4), ("sample_sizes", "dimensions", 4),
        ("width", "dimensions", 4), ("dimension", 200, 4), ("dimensions", 200, 4), ("kernel_dimension", 5000),
        ("num_seeds_sweep", BOOTSTRAP, "resampled"), ("num_seeds_kernel", BOOTSTRAP, 2),
    )  # fmt: skip
    paper_scale = {
        "num_seeds": (200, 2000),
        "num_seeds_sweep": (40, 200),
        "num_seeds_kernel": (5, 40),
        "sample_sizes": ([16, 32, 64, 128, 256], [16, 32, 64, 128, 256, 512, 1024]),
        "dimensions": ([10, 100, 1000], [10, 100, 1000, 10_000]),
    }

    num_train: Annotated[int, Field(ge=40, le=1_000_000)]
    dimension: Annotated[int, Field(ge=2, le=1_000_000)]
    width: Width
    noise_rate: Rate
    noise_radius: Positive
    init_norm: Positive
    step_size: Annotated[float, Field(gt=0, le=10)]
    delta: Annotated[float, Field(gt=0, lt=0.25)]
    num_seeds: Seeds
    num_seeds_sweep: Annotated[int, Field(ge=2, le=10_000)]
    sample_sizes: Annotated[tuple[Annotated[int, Field(ge=4, le=1_000_000)], ...], Field(min_length=2)]
    dimensions: Annotated[tuple[Annotated[int, Field(ge=2, le=1_000_000)], ...], Field(min_length=2)]
    flip_rates: Annotated[tuple[Annotated[float, Field(ge=0, le=0.5)], ...], Field(min_length=1)]
    kernel_dimension: Annotated[int, Field(ge=2, le=1_000_000)]
    kernel_noise_radius: Positive
    init_norms: Annotated[tuple[Annotated[float, Field(gt=0, le=1e8)], ...], Field(min_length=2)]
    num_seeds_kernel: Annotated[int, Field(ge=2, le=10_000)]

    @property
    def resampled(self) -> int:
        """Values of a seed that the bootstrap resamples together, and one array of their indices.

        They are the errors at every size and dimension; at every size of the overlapping clusters; of four traces.
        """
        return max(len(self.sample_sizes) * len(self.dimensions), 9, 4) + 1

    def problem(self) -> str | None:
        for name in ("sample_sizes", "dimensions", "flip_rates", "init_norms"):
            values = getattr(self, name)
            if list(values) != sorted(set(values)):
                return f"{name} = {list(values)!r}: must be increasing, each value once"
        return None


class GradientIdentities(NotebookParameters):
    """FTT, Appendices B to D."""

    notebook = "08_gradient_identities"
    paper_scale = {
        "num_seeds": (3, 20), "num_examples": (150, 2000), "num_samples": (20_000, 200_000),
        "split_dimension": (32, 36),
    }  # fmt: skip
    arrays = (
        ("num_samples", "large_dimension", 3), ("num_samples", "width", 3), ("width", "cube_size", 6),
        ("num_seeds", "num_steps", "width", "kept_a_neuron"), ("num_seeds", "num_steps", 150),  # every net of every run
        ("batch_size", "width", 3), ("batch_size", "dimension", 3), ("num_seeds", "width", 360),
        ("num_seeds", "cube_size", 3), ("large_dimension", "large_batch", 3), ("width", "large_batch", 3),
        ("width", "large_dimension", 8),
    )  # fmt: skip

    dimension: Annotated[int, Field(ge=8, le=16)]
    split_dimension: Annotated[int, Field(ge=28, le=40)]
    large_dimension: Annotated[int, Field(ge=50, le=2000)]
    width: Annotated[int, Field(ge=20, le=2000)]
    init_scale: Annotated[float, Field(gt=0.001, le=0.5)]
    step_size: Annotated[float, Field(gt=0, le=0.25)]
    batch_size: Annotated[int, Field(ge=30, le=1_000_000)]
    num_steps: Annotated[int, Field(ge=10, le=100_000)]
    num_samples: Annotated[int, Field(ge=1000, le=10_000_000)]
    num_seeds: Annotated[int, Field(ge=3, le=1000)]
    num_examples: Annotated[int, Field(ge=20, le=100_000)]

    @property
    def cube_size(self) -> int:
        """The points of the hypercube."""
        return 2**self.dimension

    @property
    def kept_a_neuron(self) -> int:
        """Numbers a neuron and step: its weights in both layers, then eight of its two norms and their growth."""
        return self.dimension + 1 + 8

    @property
    def large_batch(self) -> int:
        """The batch at the large dimension."""
        return math.ceil(self.large_dimension * math.log(self.large_dimension) ** 2)

    def problem(self) -> str | None:
        least = math.ceil(self.dimension * math.log(self.dimension) ** 2)
        if self.batch_size < least:
            return (f"batch_size = {self.batch_size}: Lemmas B.12 and B.13 need at least dimension * log(dimension)^2, "
                    f"{least} at dimension = {self.dimension}")  # fmt: skip


class OpenQuestions(NotebookParameters):
    """Both papers' discussions."""

    notebook = "12_open_questions"
    paper_scale = {"num_seeds": (5, 20), "rfa_num_seeds": (20, 100)}
    arrays = (
        ("rfa_pairs", 200, "rfa_dimension", 5), ("rfa_pairs", 200, "rfa_pairs", 50, 6), ("rfa_dimension", 400, 5),
        ("rfa_deep_dimensions", 400, 5), ("dimensions", 4000, 3), ("dimensions", "online_batch", 2),
        ("width", "online_batch", 5), ("num_seeds", BOOTSTRAP, "batch_cases", 2),
        ("rfa_num_seeds", BOOTSTRAP, "resampled"),
    )  # fmt: skip

    num_seeds: Annotated[int, Field(ge=5, le=1000)]
    batch_dimensions: Annotated[tuple[Annotated[int, Field(ge=16, le=512)], ...], Field(min_length=1)]
    batch_noise: Annotated[float, Field(ge=0.05, le=1)]
    dimensions: Annotated[tuple[Annotated[int, Field(ge=10, le=400)], ...], Field(min_length=2)]
    width: Annotated[int, Field(ge=20, le=2000)]
    init_scale: Annotated[float, Field(ge=0.01, le=1)]
    step_size: Annotated[float, Field(ge=0.01, le=0.25)]
    noise: Annotated[float, Field(ge=0.005, le=0.5)]
    rfa_num_seeds: Annotated[int, Field(ge=5, le=1000)]
    rfa_dimension: Annotated[int, Field(ge=50, le=10_000)]
    rfa_step_size: Annotated[float, Field(gt=0, le=1)]
    rfa_noise_rate: Rate
    rfa_deep_dimensions: Annotated[tuple[Annotated[int, Field(ge=5, le=10_000)], ...], Field(min_length=2)]
    rfa_pairs: Annotated[tuple[Annotated[int, Field(ge=2, le=40)], ...], Field(min_length=1)]

    @property
    def online_batch(self) -> int:
        """The largest batch of SGD on other laws."""
        return max(1, round(self.step_size * max(*self.dimensions, 50) / self.noise))

    @property
    def batch_cases(self) -> int:
        """Runs a seed with batch size 1."""
        return len(self.batch_dimensions)

    @property
    def resampled(self) -> int:
        """Values of a seed that the bootstrap resamples together, and one array of their indices."""
        return len(self.rfa_deep_dimensions) + 1

    def problem(self) -> str | None:
        if len(set(self.rfa_deep_dimensions)) < 2:
            return f"rfa_deep_dimensions = {list(self.rfa_deep_dimensions)}: two different ones are needed for a slope"


class _SignalRun(NotebookParameters):
    """What the chapters on FTT's two phases share: one run of SGD."""

    dimension: Annotated[int, Field(ge=50, le=5000)]
    width: Annotated[int, Field(ge=40, le=100_000)]
    init_scale: Annotated[float, Field(gt=0.001, le=0.3)]
    step_size: Annotated[float, Field(gt=0, le=0.25)]
    batch_size: Annotated[int, Field(ge=1, le=10_000_000)]
    num_steps: Annotated[int, Field(ge=50, le=1_000_000)]
    num_test: Annotated[int, Field(ge=100, le=1_000_000)]

    def problem(self) -> str | None:
        noise = self.step_size * self.dimension / self.batch_size
        if noise > 0.5:
            return (f"batch_size = {self.batch_size}: step_size * dimension / batch_size is {noise:.3g}; at most 0.5, "
                    "or minibatch noise hides the phases (from about 4 on, training diverges)")  # fmt: skip


class SignalFinding(_SignalRun):
    """FTT, Phase 1."""

    notebook = "06_signal_finding"
    paper_scale = {"num_seeds": (3, 10), "dimensions": ([64, 160, 400], [64, 160, 400, 1000])}
    arrays = (
        ("batch_size", "dimension", "batch_growth", 1 / 32),  # a bit a sign, and a copy
        ("num_test", "dimension", 2), ("num_test", "dimensions", 2), ("width", "dimension", 6),
        ("width", "dimensions", 6), ("dimension", 20_000, 3),
        ("num_seeds", "num_runs", "num_steps", "width", 5.5 / 2),  # every other step
        ("num_seeds", "num_runs", "num_steps", 200), ("num_seeds", "width", BOOTSTRAP, 1),  # a third of them is strong
    )  # fmt: skip

    dimensions: Annotated[tuple[Annotated[int, Field(ge=50, le=5000)], ...], Field(min_length=2)]
    num_seeds: Annotated[int, Field(ge=1, le=1000)]

    @property
    def num_runs(self) -> int:
        """Runs a seed whose histories are kept: one a dimension, and one from a smaller start."""
        return len({*self.dimensions, self.dimension}) + 1

    @property
    def batch_growth(self) -> float:
        """How much larger than batch_size x dimension the largest batch is: it grows with the dimension."""
        return (max(*self.dimensions, self.dimension) / self.dimension) ** 2


class SignalHeavy(_SignalRun):
    """FTT, Phase 2."""

    notebook = "07_signal_heavy"
    paper_scale = {"num_seeds": (3, 10), "num_noise": (4000, 40_000)}
    arrays = (
        ("batch_size", "dimension", 1 / 32),  # a bit a sign, and a copy
        ("num_test", "dimension", 2), ("num_noise", "dimension", 2), ("num_noise", "width", 4),
        ("width", "dimension", 6), ("num_seeds", "width", "dimension", 5), ("num_seeds", "width", 160),
        ("width", 1024, 4),  # a small cube
        ("num_seeds", "num_steps", "width", 1), ("num_seeds", "num_steps", 150),  # every step
        ("num_seeds", "fine_records", "width", 1), ("num_seeds", "fine_records", 150),
    )  # fmt: skip

    num_noise: Annotated[int, Field(ge=200, le=1_000_000)]
    num_seeds: Annotated[int, Field(ge=3, le=1000)]

    @property
    def fine_records(self) -> int:
        """Recorded steps of a run with a fifth of the step size, every fifth of them, to eta t = 36."""
        return int(min(36 / self.step_size, 1e15))


class Interpolation(NotebookParameters):
    """RFA, Figure 2 and Appendix E."""

    notebook = "05_interpolation"
    paper_scale = {
        "num_steps_high": (1_000_000, 10_000_000), "num_steps_low": (40_000, 10_000_000), "growth": (0.05, 0.005),
        "exact_steps_high": (1000, 1_000_000), "exact_steps_low": (40, 10_000),
        "transition_seeds": (3, 10), "transition_steps": (4000, 50_000),
    }  # fmt: skip
    arrays = (
        ("num_train_high", "dimension_high", 3), ("num_test", "dimension_high", 3), ("width", "dimension_high", 4),
        ("num_train_low", "dimension_low", 3), ("num_test", "dimension_low", 3), ("width", "dimension_low", 4),
        ("small_num_train", "small_dimension", 3), ("num_test", "small_dimension", 3),
        ("small_width", "small_dimension", 4),
        # Training in the Gram form, where d > n, holds pre-activations; otherwise only blocks of them.
        ("num_train_high", "width", 9, "gram_high"), ("num_test", "width", 2, "gram_high"),
        ("num_train_low", "width", 6, "gram_low"), ("num_test", "width", 2, "gram_low"),
        ("small_num_train", "small_width", 6, "gram_small"), ("num_test", "small_width", 2, "gram_small"),
        ("num_train_high", "width", 4),  # activations of the first panel, whatever the form
        ("transition_num_train", "transition_dimensions", 3), ("transition_width", "transition_dimensions", 4),
        ("transition_width", "transition_num_train", 6), ("transition_dimensions", 1000, 4),
        ("transition_width", 1000, 2),
    )  # fmt: skip

    num_train_high: Annotated[int, Field(ge=8, le=1_000_000)]
    dimension_high: Annotated[int, Field(ge=2, le=1_000_000)]
    num_train_low: Annotated[int, Field(ge=8, le=1_000_000)]
    dimension_low: Annotated[int, Field(ge=2, le=1_000_000)]
    num_test: Annotated[int, Field(ge=8, le=1_000_000)]
    width: Width
    noise_rate: Rate
    variance_exponent: Annotated[float, Field(ge=-4, le=0)]
    init_size: Positive
    step_size: Annotated[float, Field(gt=0, le=64)]
    largest_step: Annotated[float, Field(gt=0, le=64)]
    growth: Annotated[float, Field(gt=0, le=0.2)]
    num_steps_high: Annotated[int, Field(ge=1000, le=1_000_000_000)]
    num_steps_low: Annotated[int, Field(ge=1000, le=1_000_000_000)]
    exact_steps_high: Annotated[int, Field(ge=10, le=100_000_000)]
    exact_steps_low: Annotated[int, Field(ge=10, le=100_000_000)]
    small_num_train: Annotated[int, Field(ge=40, le=100_000)]
    small_dimension: Annotated[int, Field(ge=2, le=10_000)]
    small_width: Annotated[int, Field(ge=2, le=10_000)]
    small_steps: Annotated[int, Field(ge=1000, le=1_000_000_000)]
    transition_num_train: Annotated[int, Field(ge=20, le=10_000)]
    transition_width: Width
    transition_dimensions: Annotated[tuple[Annotated[int, Field(ge=2, le=100_000)], ...], Field(min_length=4)]
    transition_step_size: Annotated[float, Field(gt=0, le=64)]
    transition_steps: Annotated[int, Field(ge=100, le=10_000_000)]
    transition_seeds: Annotated[int, Field(ge=2, le=1000)]

    @property
    def gram_high(self) -> int:
        """1 where the first panel trains in the Gram form, 0 in the plain one."""
        return int(self.dimension_high > self.num_train_high)

    @property
    def gram_low(self) -> int:
        """1 where the second panel trains in the Gram form."""
        return int(self.dimension_low > self.num_train_low)

    @property
    def gram_small(self) -> int:
        """1 where the small copy trains in the Gram form."""
        return int(self.small_dimension > self.small_num_train)

    def problem(self) -> str | None:
        if self.largest_step < self.step_size:
            return f"largest_step = {self.largest_step:g}: must be at least step_size = {self.step_size:g}"
        for panel in ("high", "low"):
            if (steps := getattr(self, f"exact_steps_{panel}")) > (last := getattr(self, f"num_steps_{panel}")):
                return f"exact_steps_{panel} = {steps}: must be at most num_steps_{panel} = {last}"
        for name in ("num_train_high", "num_train_low", "num_test", "small_num_train", "transition_num_train"):
            num = getattr(self, name)
            if len({math.floor(self.noise_rate * size + 1e-9) for size in (num // 4, -(-num // 4))}) > 1:
                return (f"{name} = {num}: at noise_rate = {self.noise_rate:g} its clusters would differ in the number "
                        f"of flipped labels; a multiple of 4 is allowed, such as {num - num % 4 + 4}")  # fmt: skip
        dimensions, n = list(self.transition_dimensions), self.transition_num_train
        if dimensions != sorted(set(dimensions)) or dimensions[0] > n / 2 or dimensions[-1] < 10 * n:
            return (f"transition_dimensions = {dimensions}: must increase, from at most {n // 2} to at least {10 * n} "
                    f"at transition_num_train = {n}")  # fmt: skip


class SampleComplexity(NotebookParameters):
    """FTT, Theorem 3.1 against kernels."""

    notebook = "09_sample_complexity"
    paper_scale = {
        "dimensions": ([16, 32, 64, 128, 256, 512], [16, 32, 64, 128, 256, 512, 1024, 2048]),
        "kernel_dimensions": ([16, 24, 32, 48], [16, 24, 32, 48, 64]),
    }
    arrays = (
        ("num_test", "dimensions", 2), ("width", "dimensions", 6), ("dimensions", "dimensions", "batch_scale", 1 / 32),
        # A kernel sees up to 2.9 d^2 points; the search for the sample size ends there.
        (*("kernel_dimensions",) * 4, 2.9**2 * 5), ("num_test", "kernel_dimensions", "kernel_dimensions", 2.9 * 8),
        (*("kernel_dimensions",) * 4, "features_per_square", 2.9 * 2),
        ("num_test", "kernel_dimensions", "kernel_dimensions", "features_per_square", 2),
    )  # fmt: skip

    dimensions: Annotated[tuple[Annotated[int, Field(ge=8, le=8192)], ...], Field(min_length=3)]
    kernel_dimensions: Annotated[tuple[Annotated[int, Field(ge=8, le=96)], ...], Field(min_length=3)]
    width: Width
    init_scale: Annotated[float, Field(gt=0, le=1)]
    cheap_init_scale: Annotated[float, Field(gt=0, le=10)]
    cheap_step_size: Annotated[float, Field(gt=0, le=10)]
    cheap_noise: Annotated[float, Field(gt=0, le=16)]
    accuracy_level: Annotated[float, Field(ge=0.6, lt=1)]
    loss_level: Annotated[float, Field(gt=0, le=1)]
    low_loss: Annotated[float, Field(gt=0, le=1)]
    features_per_square: Annotated[float, Field(gt=0.5, le=8)]
    ridges: Annotated[tuple[Annotated[float, Field(ge=1e-8, le=100)], ...], Field(min_length=1)]
    num_test: Annotated[int, Field(ge=200, le=1_000_000)]
    num_seeds: Annotated[int, Field(ge=1, le=100)]

    @property
    def batch_scale(self) -> float:
        """The largest batch over the dimension."""
        return max(1 / self.init_scale, self.cheap_step_size / self.cheap_noise)

    def problem(self) -> str | None:
        for name in ("dimensions", "kernel_dimensions"):
            if len(set(getattr(self, name))) < 3:
                return f"{name} = {list(getattr(self, name))}: at least three different ones are needed for a slope"
        if self.low_loss >= self.loss_level:
            return f"low_loss = {self.low_loss}: must be below loss_level = {self.loss_level}"
        if self.cheap_step_size * min(self.dimensions) < self.cheap_noise:
            return (f"cheap_noise = {self.cheap_noise}: the batch cheap_step_size * dimension / cheap_noise is below 1 "
                    f"at dimension {min(self.dimensions)}")  # fmt: skip


_BASES = (NotebookParameters, _Clusters, _SignalRun)
MODELS = {model.notebook: model for base in _BASES for model in base.__subclasses__() if model not in _BASES}

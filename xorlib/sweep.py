"""The one place that maps an experiment over seeds and settings, and keeps what was computed."""

import base64
import functools
import hashlib
import inspect
import json
import logging
import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import joblib
import pandas as pd
from tqdm import tqdm

from .version import __version__

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
RESULTS = NOTEBOOKS / "results"  # small tables of paper-scale runs, part of the repository
RECORDS = NOTEBOOKS / ".cache"  # one file a finished setting, not part of it
_LOG = logging.getLogger(__name__)


def options(parameters) -> dict:
    """How a notebook runs its sweeps: preset "paper" on all cores, with progress and records that survive a kill.

    Preset "quick" gives no option: one process, nothing stored.
    """
    if parameters.preset == "quick":
        return {}
    return {"store": RECORDS / parameters.notebook, "jobs": -1, "progress": True}


def run(
    experiment: Callable[..., dict],
    settings: list[dict],
    *,
    store: Path | None = None,
    jobs: int = 1,
    progress: bool = False,
) -> pd.DataFrame:
    """One row a setting, in the order given: the setting's values, then those of experiment(**setting).

    Settings and results hold numbers, strings, booleans and lists of them (numpy's are turned into Python's). With
    `store`, each result is written to that folder as it arrives, in one piece, under a key made of everything it
    depends on: the setting, the library's version, the experiment's source and what it reads from the module or
    notebook around it. A restart computes only what is missing; a damaged record is logged and computed again.
    `jobs` is joblib's n_jobs, -1 for all cores, one thread each. Under `joblib.parallel_config("dask")` the same
    call uses a Dask cluster. An exception ends the sweep with a note that names the setting; what was finished
    stays stored. Raises ValueError when a result repeats a setting's name.
    """
    settings = [_plain(setting) for setting in settings]
    code = None if store is None else _fingerprint(experiment)
    origin = {"experiment": experiment.__qualname__, "code": code, "version": __version__}
    keys = [_digest(origin | {"setting": setting}) for setting in settings]
    results = {}
    for key, setting in zip(keys, settings, strict=True):
        if store is not None and (record := _read(Path(store) / f"{key}.json", origin, setting)) is not None:
            results[key] = record
    missing = {key: setting for key, setting in zip(keys, settings, strict=True) if key not in results}
    # One setting a task, handed back in the order of arrival, so that a kill loses only what is under way.
    arriving = joblib.Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")(
        joblib.delayed(_one)(experiment, key, setting) for key, setting in missing.items()
    )
    with tqdm(total=len(results) + len(missing), initial=len(results), disable=not progress, unit="run") as bar:
        for key, result in arriving:
            if store is not None:
                _write(Path(store) / f"{key}.json", origin, missing[key], result)
            results[key] = result
            bar.update()
    for setting, key in zip(settings, keys, strict=True):
        if shared := sorted(setting.keys() & results[key].keys()):
            raise ValueError(f"{experiment.__qualname__} returns {', '.join(shared)}, which its setting also names")
    return pd.DataFrame([setting | results[key] for setting, key in zip(settings, keys, strict=True)])


def each(experiment: Callable, settings: list[dict], **options) -> list:
    """Like `run`, for experiments that return anything, such as a history with arrays: their results as a list."""
    if options.get("store") is None and options.get("jobs", 1) == 1:
        return [experiment(**setting) for setting in settings]

    @functools.wraps(experiment)  # the key of a record is that of the experiment itself
    def packed(**setting):
        return {"pickle": base64.b64encode(pickle.dumps(experiment(**setting))).decode()}

    return [pickle.loads(base64.b64decode(text)) for text in run(packed, settings, **options).pickle]


def save_table(table: pd.DataFrame, name: str, parameters) -> Path:
    """Write notebooks/results/NAME.csv in one piece; the first row also holds the parameters and the version."""
    path = RESULTS / f"{name}.csv"
    made_by = {"parameters": parameters.model_dump_json(), "version": __version__}
    first = {key: [value] + [None] * (len(table) - 1) for key, value in made_by.items()}  # once, or it fills the file
    replace_file(path, table.assign(**first).to_csv(index=False))
    return path


def load_table(name: str) -> tuple[pd.DataFrame, dict, str] | None:
    """The table that save_table wrote, the parameters and the version that made it; None when there is none."""
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        return None
    table = pd.read_csv(path)
    parameters, version = table["parameters"][0], table["version"][0]
    return table.drop(columns=["parameters", "version"]), json.loads(parameters), version


def _one(experiment, key: str, setting: dict) -> tuple[str, dict]:
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)  # with one thread sums come out in one order, on any number of cores
    try:
        with threadpool_limits(1):
            return key, _plain(experiment(**setting))
    except Exception as error:
        error.add_note(f"in a sweep, at {json.dumps(setting)}")
        raise


def _plain(values: dict) -> dict:
    """The same values after a passage through JSON, so that fresh and stored results are equal to the last bit."""
    return json.loads(json.dumps(values, default=lambda value: value.tolist()))


def _digest(content: dict) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _fingerprint(function: FunctionType) -> str:
    """A digest of a function's source and of the values and functions it reads from its module or notebook.

    The library's own code is left out: the version stands for it.
    """
    parts, waiting, seen = [], [function], set()
    while waiting:
        f = waiting.pop()
        seen.add(f)
        parts.append(inspect.getsource(f))
        cells = zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)
        around = {name: f.__globals__[name] for name in _names(f.__code__) if name in f.__globals__}
        for name, value in sorted((around | {name: cell.cell_contents for name, cell in cells}).items()):
            if isinstance(value, FunctionType) and value.__module__ == function.__module__:
                waiting += [value] if value not in seen else []
            elif not isinstance(value, ModuleType) and not callable(value):
                parts.append(f"{name}={joblib.hash(value)}")
    return _digest({"parts": parts})


def _names(code: CodeType) -> set[str]:
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _read(path: Path, origin: dict, setting: dict) -> dict | None:
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_text())
        if record.pop("checksum") == _digest(record) and record["setting"] == setting and record["origin"] == origin:
            return record["result"]
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    _LOG.warning("record %s is damaged: %s is computed again", path.name, json.dumps(setting))
    return None


def _write(path: Path, origin: dict, setting: dict, result: dict) -> None:
    record = {"origin": origin, "setting": setting, "result": result}
    replace_file(path, json.dumps(record | {"checksum": _digest(record)}))


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file so that whoever reads it, or a kill at any moment, finds the old or the new content, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as partial:
        partial.write(content.encode() if isinstance(content, str) else content)
        partial.flush()
        os.fsync(partial.fileno())
    os.chmod(partial.name, 0o644)
    os.replace(partial.name, path)

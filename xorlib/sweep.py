"""The one place that maps an experiment over seeds and settings; the store keeps what was computed."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import joblib
import pandas as pd
from tqdm import tqdm

from .store import RECORDS, Records, code_digest

CLUSTER = "XORLIB_DASK"  # the environment variable with the address of a Dask scheduler: `make paper DASK=address`


def options(parameters) -> dict:
    """How a notebook runs its sweeps: preset "paper" on all cores, with progress and records that survive a kill.

    Preset "quick" gives no option: one process, nothing stored.
    """
    if parameters.preset == "quick":
        return {}
    return {"store": RECORDS / parameters.notebook, "jobs": -1, "progress": True}


def run(experiment: Callable[..., dict], settings: list[dict], **how) -> pd.DataFrame:
    """One row a setting, in the order given: the setting's values, then those of experiment(**setting).

    Settings and results hold numbers, strings, booleans and lists of them (numpy's are turned into Python's). For
    `store`, `jobs`, `progress` and `cluster` see `each`. Raises ValueError when a result repeats a setting's name.
    """
    settings = [_plain(setting) for setting in settings]
    results = each(experiment, settings, plain=True, **how)
    for setting, result in zip(settings, results, strict=True):
        if shared := sorted(setting.keys() & result.keys()):
            raise ValueError(f"{experiment.__qualname__} returns {', '.join(shared)}, which its setting also names")
    return pd.DataFrame([setting | result for setting, result in zip(settings, results, strict=True)])


def each(
    experiment: Callable,
    settings: list[dict],
    *,
    store: Path | None = None,
    jobs: int = 1,
    progress: bool = False,
    cluster: str | None = None,
    plain: bool = False,
) -> list:
    """The results of experiment(**setting), one a setting, in the order given: arrays, tables and nets included.

    With `store`, each result is written to that folder as it arrives, in one piece, under a key made of everything
    it depends on (store.code_digest): the setting, the code that the experiment reaches, the library's included,
    and the values it reads from the module or notebook around it. A restart computes only what is missing; a
    damaged record is logged and computed again. `jobs` is joblib's n_jobs, -1 for all cores, one thread each.
    `cluster` is the address of a Dask scheduler whose workers take their place, by default the one that the environment
    names where jobs is -1. An exception ends the sweep with a
    note that names the setting, a lost worker with an error that does; what was finished stays stored, on a cluster
    also what other workers still finish.
    """
    settings = [_plain(setting) for setting in settings]
    cluster = cluster or (os.environ.get(CLUSTER) if jobs == -1 else None)
    records = None
    if store is not None:
        origin = {"experiment": experiment.__qualname__, "code": code_digest(experiment)}
        records = Records(Path(store), origin)
    tasks = {json.dumps(setting, sort_keys=True): setting for setting in settings}
    results = {}
    for key, setting in tasks.items() if records else ():
        if (found := records.get(setting)) is not None:
            results[key] = found
    missing = {key: setting for key, setting in tasks.items() if key not in results}
    failed: list[Exception] = []
    with tqdm(total=len(tasks), initial=len(results), disable=not progress, unit="run") as bar:
        for key, result in _arriving(experiment, missing, jobs, cluster, plain):
            if isinstance(result, Exception):
                failed.append(result)
                continue
            if records:
                records.put(missing[key], result)
            results[key] = result
            bar.update()
    if failed:
        raise failed[0]
    return [results[json.dumps(setting, sort_keys=True)] for setting in settings]


def _arriving(experiment, missing: dict, jobs: int, cluster: str | None, plain: bool) -> Iterator:
    """Results as they arrive, so that a kill loses only what is under way."""
    if cluster:
        from .cluster import arriving

        tasks = {key: (experiment, key, setting, plain) for key, setting in missing.items()}
        for key, result in arriving(_one, tasks, cluster):
            yield result if isinstance(result, tuple) else (key, result)
    else:
        yield from joblib.Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")(
            joblib.delayed(_one)(experiment, key, setting, plain) for key, setting in missing.items()
        )


def _one(experiment, key: str, setting: dict, plain: bool) -> tuple[str, object]:
    import torch
    from threadpoolctl import threadpool_limits

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # with one thread sums come out in one order, on any number of cores
    try:
        with threadpool_limits(1):
            result = experiment(**setting)
            return key, _plain(result) if plain else result
    except Exception as error:
        error.add_note(f"in a sweep, at {json.dumps(setting)}")
        raise
    finally:
        torch.set_num_threads(threads)


def _plain(values: dict) -> dict:
    """The same values after a passage through JSON, so that fresh and stored results are equal to the last bit."""
    return json.loads(json.dumps(values, default=lambda value: value.tolist()))

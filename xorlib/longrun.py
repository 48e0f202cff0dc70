"""Long runs of gradient descent in stretches: each ends in a checkpoint, so that a kill loses only one stretch."""

import hashlib
import io
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from zipfile import BadZipFile

import joblib
import numpy as np
import pandas as pd

from . import train
from .data import Sample
from .network import Network
from .sweep import replace_file
from .version import __version__

_LOG = logging.getLogger(__name__)


def two_criteria(points: Sample, fresh: Sample):
    """A recording function: the loss, and accuracies in percent when f > 0 and when f > 1/2 counts as positive.

    The second criterion, in the columns that end in _half, is what Figure 2 of RFA appears to use.
    """

    def record(state: train.State) -> dict:
        row = {"loss": float(np.logaddexp(0.0, -points.y * state.train_output).mean())}
        for ending, threshold in (("", 0.0), ("_half", 0.5)):
            for name, output, y in (("train", state.train_output, points.y), ("test", state.test_output, fresh.y)):
                row[f"{name}_accuracy{ending}"] = 100 * float(np.mean((output > threshold) == (y > 0)))
        return row

    return record


def gradient_descent(
    net: Network,
    points: Sample,
    fresh: Sample,
    *,
    record_at: Sequence[float],
    stretch_ends: Sequence[float],
    store: Path | None = None,
    start: float = 0.0,
    dtype: str = "float32",
    progress: bool = False,
    **options,
) -> train.Run:
    """train.gradient_descent with `two_criteria`, cut at `stretch_ends`, the last of them the end of the run.

    With `store`, the net and the rows so far are written to that folder at the end of each stretch, in one piece,
    under a key made of the version, the data, the initial net and every option; a restart goes on from there. A
    damaged checkpoint is logged and the run begins again. Every stretch sets out from the rounded net of the one
    before, whether or not there was a break, so both give the same rows to the last bit.
    """
    ends = sorted(set(stretch_ends))
    key = _digest(net, points, fresh, ends, start=start, dtype=dtype, record_at=sorted(set(record_at)), **options)
    path = None if store is None else Path(store) / f"{key}.npz"
    done, rows, num_updates = start, [], 0
    if path is not None and (checkpoint := _read(path)) is not None:
        weights, done, rows, num_updates = checkpoint
        net = replace(net, weights=weights)
    for end in (end for end in ends if end > done):
        inside = [step for step in record_at if done < step <= end or step == done == start]
        part = train.gradient_descent(
            net, points, start=done, num_steps=end, record_at=inside or [end], record=two_criteria(points, fresh),
            test_x=fresh.x, dtype=dtype, progress=progress, **options)  # fmt: skip
        net, done, num_updates = part.network, end, num_updates + part.num_updates
        rows += part.history.to_dict("records") if inside else []
        if path is not None:
            _write(path, net.weights.astype(dtype), done, rows, num_updates)
    return train.Run(net, pd.DataFrame(rows), num_updates)


def _digest(net: Network, points: Sample, fresh: Sample, ends: list, **options) -> str:
    arrays = [net.weights, net.second_layer, net.scale, points.x, points.y, fresh.x, fresh.y]
    content = {"arrays": [joblib.hash(array) for array in arrays], "ends": ends, "version": __version__, **options}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _read(path: Path) -> tuple[np.ndarray, float, list[dict], int] | None:
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            weights, rest = stored["weights"], json.loads(str(stored["rest"]))
        if rest["checksum"] == joblib.hash(weights):
            return weights.astype(float), rest["done"], rest["rows"], rest["num_updates"]
    except (ValueError, KeyError, OSError, EOFError, BadZipFile):
        pass
    _LOG.warning("checkpoint %s is damaged: the run begins again", path.name)
    return None


def _write(path: Path, weights: np.ndarray, done: float, rows: list[dict], num_updates: int) -> None:
    rest = {"done": done, "rows": rows, "num_updates": num_updates, "checksum": joblib.hash(weights)}
    content = io.BytesIO()
    np.savez(content, weights=weights, rest=json.dumps(rest))
    replace_file(path, content.getvalue())

"""Long runs of gradient descent in stretches: each ends in a checkpoint, so that a kill loses only one stretch."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd

from . import train
from .data import Sample
from .network import Network
from .store import Records, code_digest


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
    under a key made of the code, the data, the initial net and every option; a restart goes on from there. A
    damaged checkpoint is logged and the run begins again. Every stretch sets out from the rounded net of the one
    before, whether or not there was a break, so both give the same rows to the last bit.
    """
    ends = sorted(set(stretch_ends))
    made_by = {"start": start, "dtype": dtype, "record_at": sorted(set(record_at)), "ends": ends, **options}
    arrays = [net.weights, net.second_layer, net.scale, points.x, points.y, fresh.x, fresh.y]
    setting = made_by | {"arrays": [joblib.hash(array) for array in arrays]}
    records, done, rows, num_updates = None, start, [], 0
    if store is not None:
        records = Records(Path(store), {"run": "longrun", "code": code_digest(train.gradient_descent, two_criteria)})
        if (checkpoint := records.get(setting)) is not None:
            done, rows, num_updates = (checkpoint[name] for name in ("done", "rows", "num_updates"))
            net = replace(net, weights=checkpoint["weights"].astype(float))
    for end in (end for end in ends if end > done):
        inside = [step for step in record_at if done < step <= end or step == done == start]
        part = train.gradient_descent(
            net, points, start=done, num_steps=end, record_at=inside or [end], record=two_criteria(points, fresh),
            test_x=fresh.x, dtype=dtype, progress=progress, **options)  # fmt: skip
        net, done, num_updates = part.network, end, num_updates + part.num_updates
        rows += part.history.to_dict("records") if inside else []
        if records is not None:
            state = {"done": done, "rows": rows, "num_updates": num_updates, "weights": net.weights.astype(dtype)}
            records.put(setting, state)
    return train.Run(net, pd.DataFrame(rows), num_updates)

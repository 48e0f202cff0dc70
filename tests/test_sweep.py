"""Sweeps: order, records, keys, damage, a kill half way, errors, other backends."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import joblib
import numpy as np
import pandas as pd
import pytest
import torch

from xorlib import network, sweep

factor = 2


class Log:
    """A log that the experiments write and do not read; a list would count as something they depend on."""

    calls = []


def experiment(seed, size=1):
    Log.calls.append(seed)
    return {"value": np.float64(_helper(seed)) / 3, "curve": np.arange(size)}


def _helper(seed):
    return factor * seed


@pytest.fixture(autouse=True)
def no_calls():
    Log.calls.clear()


def test_rows_come_in_the_order_of_the_settings():
    table = sweep.run(experiment, [{"seed": s, "size": 2} for s in (5, 1, 5)])
    assert list(table.columns) == ["seed", "size", "value", "curve"]
    assert table["seed"].tolist() == [5, 1, 5] and table["value"].tolist() == [10 / 3, 2 / 3, 10 / 3]
    assert table["curve"][0] == [0, 1] and Log.calls == [5, 1]


def test_a_restart_computes_only_what_is_missing(tmp_path):
    first = sweep.run(experiment, [{"seed": 1}, {"seed": 2}], store=tmp_path)
    again = sweep.run(experiment, [{"seed": 2}, {"seed": 3}, {"seed": 1}], store=tmp_path)
    assert Log.calls == [1, 2, 3]
    pd.testing.assert_frame_equal(first, again.iloc[[2, 0]].reset_index(drop=True))


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[:-9],
        lambda text: "[]",
        lambda text: text.replace('"value": 0.66', '"value": 0.67'),
    ],
)
def test_a_damaged_record_is_noticed_and_computed_again(tmp_path, caplog, damage):
    sweep.run(experiment, [{"seed": 1}, {"seed": 2}], store=tmp_path)
    broken = next(p for p in tmp_path.iterdir() if json.loads(p.read_text(encoding="utf-8"))["setting"]["seed"] == 1)
    text = broken.read_text(encoding="utf-8")
    assert damage(text) != text
    broken.write_text(damage(text), encoding="utf-8")
    table = sweep.run(experiment, [{"seed": 1}, {"seed": 2}], store=tmp_path)
    assert Log.calls == [1, 2, 1] and table["value"][0] == 2 / 3
    assert "damaged" in caplog.text and '"seed": 1' in caplog.text
    assert broken.read_text(encoding="utf-8") == text


def test_the_key_covers_all_that_a_result_depends_on(tmp_path, monkeypatch):
    settings = [{"seed": 1}]

    def changes():
        before = len(Log.calls)
        sweep.run(experiment, settings, store=tmp_path)
        return len(Log.calls) - before

    assert changes() == 1 and changes() == 0
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "factor", 3)  # read by the helper, not by the experiment itself
        assert changes() == 1
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "_helper", lambda seed: factor + seed)
        assert changes() == 1
    settings = [{"seed": 1, "size": 1}]
    assert changes() == 1
    settings = [{"size": 1, "seed": 1}]
    assert changes() == 0


def test_a_failure_names_the_setting_and_keeps_what_was_finished(tmp_path):
    def fails_at_two(seed):
        Log.calls.append(seed)
        if seed == 2 and len(Log.calls) < 3:
            raise FloatingPointError("diverged")
        return {"value": seed}

    with pytest.raises(FloatingPointError) as caught:
        sweep.run(fails_at_two, [{"seed": 1}, {"seed": 2}], store=tmp_path)
    assert '"seed": 2' in caught.value.__notes__[0]
    assert sweep.run(fails_at_two, [{"seed": 1}, {"seed": 2}], store=tmp_path)["value"].tolist() == [1, 2]
    assert Log.calls == [1, 2, 2]
    with pytest.raises(ValueError, match="seed"):
        sweep.run(lambda seed: {"seed": seed}, [{"seed": 1}])


def test_a_kill_loses_only_what_is_under_way(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(f"""
        import pathlib, sys, time
        from xorlib import sweep
        def slow(seed):
            with open({str(tmp_path / "log")!r}, "a", encoding="utf-8") as log:
                print(seed, file=log)
            time.sleep(60 if seed == 3 and sys.argv[1:] else 0)
            return {{"value": seed * 0.1}}
        table = sweep.run(slow, [{{"seed": s}} for s in range(6)], store={str(tmp_path / "store")!r})
        print(table.to_csv())
        """),
        encoding="utf-8",
    )
    log, store = tmp_path / "log", tmp_path / "store"
    child = subprocess.Popen([sys.executable, script, "hang"])
    limit = time.monotonic() + 60
    while not (log.exists() and log.read_text(encoding="utf-8").split()[-1:] == ["3"]):
        assert time.monotonic() < limit and child.poll() is None
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert len(list(store.glob("*.json"))) == 3
    resumed = subprocess.run([sys.executable, script], capture_output=True, encoding="utf-8", check=True).stdout
    assert log.read_text(encoding="utf-8").split() == list("0123" + "345")
    assert resumed == pd.DataFrame({"seed": range(6), "value": [s * 0.1 for s in range(6)]}).to_csv() + "\n"


def history(seed):
    Log.calls.append(seed)
    net = network.Network(np.full((2, 3), factor / seed), np.ones(2))
    columns = {"sign": [np.full(2, factor * seed)], "net": [None], "loss": [0.1]}
    frame = pd.DataFrame(columns, pd.Index([3], name="step"))
    return frame, {"net": net, seed: (1, "two")}


def test_any_result_is_kept_under_the_key_of_its_experiment(tmp_path, monkeypatch):
    settings = [{"seed": 2}, {"seed": 1}]
    plain = sweep.each(history, settings)
    for _ in range(2):
        kept = sweep.each(history, settings, store=tmp_path)
        for (ours, one), (theirs, other) in zip(plain, kept, strict=True):
            pd.testing.assert_frame_equal(ours, theirs)
            assert isinstance(theirs.sign[3], np.ndarray)
            seed = next(key for key in one if key != "net")
            assert one[seed] == other[seed] and np.array_equal(one["net"].weights, other["net"].weights)
    assert Log.calls == [2, 1, 2, 1]
    monkeypatch.setitem(globals(), "factor", 3)
    assert sweep.each(history, settings, store=tmp_path)[0][0].sign[3].tolist() == [6, 6]
    for path in tmp_path.iterdir():  # the arrays are plain, and what they cannot hold is refused
        np.load(path, allow_pickle=False).close()
    with pytest.raises(TypeError, match="a Log"):
        sweep.each(lambda seed: Log(), [{"seed": 1}], store=tmp_path)


def test_the_callers_threads_come_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        sweep.run(experiment, [{"seed": 1}])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_any_joblib_backend_serves():
    with joblib.parallel_config("threading", n_jobs=2):
        table = sweep.run(experiment, [{"seed": s} for s in range(5)], jobs=2)
    assert table["value"].tolist() == [2 * s / 3 for s in range(5)]

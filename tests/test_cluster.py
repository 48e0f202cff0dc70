"""Tasks on a real Dask cluster of two worker processes on loopback: results, deaths of workers, an empty pool."""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pandas as pd
import pytest

from xorlib import cluster, sweep

if importlib.util.find_spec("distributed") is None and not os.environ.get("CI"):
    pytest.skip("distributed is not installed: pip install xorlib[cluster]", allow_module_level=True)


class Cluster:
    """A scheduler on a free port and its workers, each in a process group of its own, so that all can be ended."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.file = folder / "scheduler.json"
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", self.file)
        limit = time.monotonic() + 30
        while not hasattr(self, "address"):
            if time.monotonic() > limit:
                self.end()
                pytest.fail((folder / "0.log").read_text(encoding="utf-8"))
            time.sleep(0.05)
            try:
                self.address = json.loads(self.file.read_text(encoding="utf-8"))["address"]
            except (FileNotFoundError, ValueError):  # not there yet, or half written
                pass

    def _start(self, *command):
        with open(self.folder / f"{len(self.processes)}.log", "w", encoding="utf-8") as log:
            command = [sys.executable, "-m", "distributed.cli.dask_" + command[0], *command[1:]]
            fewer = os.environ | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}  # a restart takes seconds
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=fewer)
        self.processes.append(process)
        return process

    def add_worker(self, nanny=True):
        return self._start("worker", self.address, "--host", "127.0.0.1", "--nthreads", "1", "--nworkers", "1",
                           "--no-dashboard", "--nanny" if nanny else "--no-nanny", "--death-timeout", "30",
                           "--local-directory", self.folder)  # fmt: skip

    def end(self):
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


@contextlib.contextmanager
def running(folder):
    made = Cluster(folder)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture
def scheduler(tmp_path):
    with running(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def nannies(tmp_path_factory):
    with running(tmp_path_factory.mktemp("nannies")) as made:
        made.add_worker()
        made.add_worker()
        yield made


def by_value(function):
    """As a notebook's function: the workers cannot import this module."""
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return function


def work(number, folder=None, always=False):
    """What each task does; a file of its own, or `always`, kills the worker that runs it."""
    import os
    import pathlib
    import signal
    import time

    if number < 0:
        raise FloatingPointError(f"diverged at {number}")
    if folder is not None:
        mark = pathlib.Path(folder) / f"{number}.pid"
        first = not mark.exists()
        mark.write_text(str(os.getpid()), encoding="utf-8")
        if always:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(30 if first else 0)
    time.sleep(0.05)
    return number, number / 3


def test_rows_are_those_of_one_process_and_an_exception_arrives_as_one(nannies):
    tasks = {f"setting {number}": (number,) for number in range(-1, 12)}
    rows = dict(cluster.arriving(by_value(work), tasks, nannies.address))
    failed = rows.pop("setting -1")
    assert rows == {f"setting {number}": work(number) for number in range(12)}
    assert isinstance(failed, FloatingPointError) and "diverged at -1" in str(failed)


def test_functions_of_a_script_or_notebook_travel(nannies, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(f"""
        from xorlib import cluster
        factor = 3
        class Size:
            def __init__(self, value):
                self.value = value
        def helper(size):
            return factor * size.value
        def experiment(size, long):
            return helper(size)
        tasks = {{str(n): (Size(n), "x" * 5000) for n in range(3)}}
        print(sorted(cluster.arriving(experiment, tasks, {nannies.address!r})))
        """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, encoding="utf-8", timeout=50)
    assert done.stdout == "[('0', 0), ('1', 3), ('2', 6)]\n", done.stderr


def test_a_worker_killed_half_way_loses_nothing(nannies, tmp_path):
    tasks = {str(number): (number, str(tmp_path)) if number == 3 else (number,) for number in range(10)}
    rows, mark = {}, tmp_path / "3.pid"
    for key, row in cluster.arriving(by_value(work), tasks, nannies.address):
        rows[key] = row
        if len(rows) == 9:  # only the one that hangs is left
            os.kill(int(mark.read_text(encoding="utf-8")), signal.SIGKILL)
    assert rows == {str(number): work(number) for number in range(10)}


def test_a_task_that_always_kills_its_worker_is_named_and_the_rest_arrive(nannies, tmp_path):
    tasks = {f"seed {n}": (n, str(tmp_path), True) if n == 5 else (n,) for n in range(10)}
    start = time.monotonic()
    rows = dict(cluster.arriving(by_value(work), tasks, nannies.address))
    assert time.monotonic() - start < 50
    error = rows.pop("seed 5")
    assert isinstance(error, RuntimeError) and str(error).startswith("seed 5: its worker died 2 times")
    assert rows == {f"seed {n}": work(n) for n in range(10) if n != 5}


def test_a_pool_that_runs_dry_ends_with_one_line_and_what_was_done_is_delivered(scheduler, tmp_path):
    for _ in range(2):
        scheduler.add_worker(nanny=False)
    tasks = {str(n): (n, str(tmp_path), True) if n == 9 else (n,) for n in range(10)}
    arriving, rows = cluster.arriving(by_value(work), tasks, scheduler.address, patience=3), {}
    with pytest.raises(RuntimeError, match=r"no worker for 3 s .*; \d+ of 10 tasks are open"):
        for key, row in arriving:
            rows[key] = row
    assert rows and all(row == work(int(key)) for key, row in rows.items())


def test_a_scheduler_that_is_absent_or_lost_ends_with_one_line(scheduler):
    with pytest.raises(RuntimeError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        next(cluster.arriving(work, {"a": (1,)}, "tcp://127.0.0.1:9", patience=1))
    scheduler.add_worker()
    arriving = cluster.arriving(by_value(work), {str(n): (n,) for n in range(500)}, scheduler.address, patience=5)
    next(arriving)
    os.killpg(scheduler.processes[0].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"the Dask scheduler .*; \d+ of 500 tasks are open"):
        list(arriving)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(RuntimeError, match=r"pip install xorlib\[cluster\]"):
        next(cluster.arriving(work, {"a": (1,)}, "tcp://127.0.0.1:9"))


def curve(seed, deadly=-1):
    import os
    import signal

    if seed == deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"value": seed / 3, "curve": [seed] * 3}


def test_a_sweep_there_gives_the_rows_of_one_process_and_resumes(nannies, tmp_path):
    settings = [{"seed": seed, "deadly": 4} for seed in range(6)]
    how = {"store": tmp_path / "records", "cluster": nannies.address}
    with pytest.raises(RuntimeError, match=r'"seed": 4.*its worker died'):
        sweep.run(by_value(curve), settings, **how)
    stored = {path.name: path.stat().st_mtime_ns for path in how["store"].iterdir()}
    assert len(stored) == 5  # all but the deadly one
    settings = [setting for setting in settings if setting["seed"] != 4] + [{"seed": 4, "deadly": -1}]
    there = sweep.run(by_value(curve), settings, **how)
    pd.testing.assert_frame_equal(there, sweep.run(curve, settings))
    kept = {path.name: path.stat().st_mtime_ns for path in how["store"].iterdir() if path.name in stored}
    assert kept == stored  # read, not computed again

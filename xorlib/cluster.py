"""Tasks on a Dask cluster, handed back as they arrive, whatever becomes of its workers.

joblib's Dask backend (1.6.0) does not serve for this: when a task has killed its worker too often, the cluster gives
it up, but the backend tells nobody, and the sweep waits for ever (joblib/_dask.py: `_collect` leaves out the callback).
"""

import queue
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

POLL = 0.5  # seconds between two looks at the cluster while nothing arrives


def arriving(
    function: Callable, tasks: dict[str, tuple], address: str, *, patience: float = 60.0
) -> Iterator[tuple[str, object]]:
    """(key, function(*task)) for each task on the Dask cluster at `address`, in the order of arrival.

    A task that raises arrives as (key, its exception); one whose worker died more often than the scheduler's setting
    distributed.scheduler.allowed-failures (3) arrives as (key, RuntimeError) after a second trial, alone on the
    cluster: the scheduler also blames tasks that only waited on a worker that died. function and tasks travel by
    value where they are of a notebook; the workers need this library. Leaving the iterator early cancels what is open.
    Raises RuntimeError, with one line, when no scheduler answers, the scheduler is lost, or there is no worker for
    `patience` seconds while tasks are open.
    """
    try:
        import cloudpickle
        import distributed
    except ImportError:
        raise RuntimeError("a cluster needs the package distributed: pip install xorlib[cluster]") from None
    try:
        client = distributed.Client(address, timeout=patience, set_as_default=False)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise RuntimeError(f"no Dask scheduler answers at {address}: {str(error).splitlines()[0]}") from None
    arrived: queue.SimpleQueue = queue.SimpleQueue()
    keys = {}  # of the futures that are under way

    def submit(key: str) -> None:
        # Our own pickle: distributed sends a notebook's functions by name where the arguments are long.
        payload = cloudpickle.dumps((function, tasks[key]))
        # One name for all: the scheduler then keeps what has no worker yet, and does not blame it for a death.
        future = client.submit(_call, payload, pure=False)
        keys[future] = key
        future.add_done_callback(arrived.put)

    def landed():
        """The next future that is done; time that the caller takes between two of them does not count."""
        alone_since = None
        while True:
            with suppress(queue.Empty):
                return arrived.get(timeout=POLL)
            if client.status != "running" or client.scheduler_info()["workers"]:
                alone_since = None
                continue
            alone_since = alone_since or time.monotonic()
            if (waited := time.monotonic() - alone_since) > patience:
                raise RuntimeError(f"the Dask cluster at {address} has had no worker for {waited:.0f} s; "
                                   f"{len(keys) + len(doubtful)} of {len(tasks)} tasks are open")  # fmt: skip

    doubtful, alone = [], set()
    try:
        for key in tasks:
            submit(key)
        while keys or doubtful:
            if not keys:
                alone.add(doubtful[0])
                submit(doubtful.pop(0))
            future = landed()
            key = keys[future]
            if future.status == "error":
                result = future.exception()
                if isinstance(result, distributed.KilledWorker):
                    if key not in alone and len(tasks) > 1:
                        del keys[future]
                        doubtful.append(key)
                        continue
                    result = _named(key, result)
            elif future.status == "finished":
                try:
                    result = future.result(timeout=POLL * 20)
                except Exception:  # lost with its worker before it came over: it is computed again, or has failed
                    future.add_done_callback(arrived.put)
                    continue
            elif future.status == "cancelled":
                raise RuntimeError(f"the Dask scheduler at {address} is lost; "
                                   f"{len(keys) + len(doubtful)} of {len(tasks)} tasks are open")  # fmt: skip
            else:  # lost with its worker after it was done: back to work
                future.add_done_callback(arrived.put)
                continue
            del keys[future]
            yield key, result
    finally:
        keys.clear()
        client.close(timeout=5)


def _call(payload: bytes):
    import pickle

    function, task = pickle.loads(payload)
    return function(*task)


def _named(key: str, killed: Exception) -> RuntimeError:
    """KilledWorker holds the cluster's name of the task; the reader needs ours."""
    error = RuntimeError(f"{key}: its worker died {killed.allowed_failures + 1} times, more often than "
                         "distributed.scheduler.allowed-failures allows")  # fmt: skip
    error.__cause__ = killed
    return error

"""Tasks on a Dask cluster, handed back as they arrive, whatever becomes of its workers.

joblib's Dask backend (1.6.0) does not serve for this: when a task has killed its worker too often, the cluster gives
it up, but the backend tells nobody, and the sweep waits for ever (joblib/_dask.py: `_collect` leaves out the callback).
"""

import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

POLL = 0.02  # seconds between two looks while nothing arrives


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
    keys, doubtful, alone = {}, [], set()  # keys: of the futures under way
    # It also fetches the results, beside each other: one that was lost with its worker is computed again, meanwhile.
    landed = distributed.as_completed([], loop=client.loop, with_results=True, raise_errors=False)

    def submit(key: str) -> None:
        # Our own pickle: distributed sends a notebook's functions by name where the arguments are long. And one name
        # for all: the scheduler then keeps what has no worker yet, and does not blame it for a death.
        future = client.submit(_call, cloudpickle.dumps((function, tasks[key])), pure=False)
        keys[future] = key
        landed.add(future)

    def ends(why: str) -> RuntimeError:
        return RuntimeError(f"{why}; {len(keys) + len(doubtful)} of {len(tasks)} tasks are open")

    def wait() -> None:
        """Until a future has landed; the time that the caller takes between two of them does not count."""
        last_seen = time.monotonic()
        while not landed.has_ready():
            running = client.status == "running"
            if running and client.scheduler_info()["workers"]:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > patience:
                missing = "the Dask cluster has had no worker" if running else "the Dask scheduler has been gone"
                raise ends(f"{missing} for {patience:g} s ({address})")
            time.sleep(POLL)

    try:
        for key in tasks:
            submit(key)
        while keys or doubtful:
            if not keys:
                alone.add(doubtful[0])
                submit(doubtful.pop(0))
            wait()
            future, result = next(landed)
            if isinstance(result, bytes):
                result = pickle.loads(result)
            elif future.status == "error":
                result = result[1]
            else:  # cancelled: the client has given up the connection
                raise ends(f"the Dask scheduler is lost ({address})")
            key = keys.pop(future)
            if isinstance(result, distributed.KilledWorker):
                if key not in alone and len(tasks) > 1:
                    doubtful.append(key)
                    continue
                result = _named(key, result)
            del future  # its result may leave the worker's memory
            yield key, result
    finally:
        keys.clear()
        with suppress(TimeoutError):
            client.close(timeout=5)


def _call(payload: bytes) -> bytes:
    import cloudpickle

    function, task = pickle.loads(payload)
    return cloudpickle.dumps(function(*task))


def _named(key: str, killed: Exception) -> RuntimeError:
    """KilledWorker holds the cluster's name of the task; the reader needs ours."""
    error = RuntimeError(f"{key}: its worker died {killed.allowed_failures + 1} times, more often than "
                         "distributed.scheduler.allowed-failures allows")  # fmt: skip
    error.__cause__ = killed
    return error

"""Work that is shared among processes: copies of this one, where the system makes them and there is enough to do."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from codemods.disk import WITNESS

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_FORKS = sys.platform == "linux" and hasattr(os, "memfd_create")  # elsewhere a copy of a process is not safe, or not to be had
_NUMBER = 4  # bytes of the number of an item
_SHARE = 150_000  # of weight, that of a source being its bytes: a third of a second, and a hundred times what a copy takes


class Died(Exception):
    """A process ended before it had done its share."""


class _Worker(NamedTuple):
    process: int
    pipe: int


def spread(
    items: Sequence[_Item], work: Callable[[_Item], _Result], weight: Callable[[_Item], int], least: int | None = None
) -> list[_Result]:
    """Do some work for each item, and return the results in the order of the items.

    Each process takes the next item, the heaviest first, whenever it has done one. What the work leaves behind in memory is lost,
    but for what it tells the witness of the file system. There are no more processes than the weight is times the `least`, by
    default what takes a third of a second where the weight is that of sources.

    Raises:
        Died: a process did.
    """
    weights = [weight(item) for item in items]
    count = _processes(weights, least or _SHARE)
    if count == 1:
        return [work(item) for item in items]
    heaviest_first = sorted(range(len(items)), key=lambda each: -weights[each])
    own = heaviest_first[:1]
    results: dict[int, _Result] = {}
    workers: list[_Worker] = []
    try:
        waiting = _queue(heaviest_first[count:])
    except OSError:
        return [work(item) for item in items]
    try:
        for first in heaviest_first[1:count]:
            try:
                workers.append(_start(_taken([first], waiting), items, work))
            except OSError:  # there may be no more processes, or no more open files
                own.append(first)
        for each in _taken(own, waiting):
            results[each] = work(items[each])
        for worker in workers:
            results |= _results(worker)
    finally:
        os.close(waiting)
        for worker in workers:
            os.close(worker.pipe)
            with suppress(ProcessLookupError):
                os.kill(worker.process, signal.SIGKILL)
            with suppress(ChildProcessError):  # who started this process may have it ignore the end of others
                os.waitpid(worker.process, 0)
    return [results[each] for each in range(len(items))]


def _processes(weights: Sequence[int], least: int) -> int:
    """Return how many processes there are to be, this one among them."""
    processes = len(os.sched_getaffinity(0)) if _FORKS and _is_single() else 1
    return max(1, min(processes, len(weights), sum(weights) // least))


def _queue(numbers: Sequence[int]) -> int:
    """Return a file of these numbers, which all processes read with one offset."""
    queue = os.memfd_create("items")
    with os.fdopen(os.dup(queue), "wb") as file:
        file.write(b"".join(number.to_bytes(_NUMBER) for number in numbers))
    os.lseek(queue, 0, os.SEEK_SET)
    return queue


def _taken(own: Iterable[int], queue: int) -> Iterator[int]:
    """Yield the numbers of the items that this process is to do: its own, and what is left as long as something is."""
    yield from own
    while number := _next(queue):
        yield int.from_bytes(number)


def _next(queue: int) -> bytes:
    """Read the next number; not every system reads and moves the offset in one step."""
    import fcntl  # where there are copies, it is there

    fcntl.lockf(queue, fcntl.LOCK_EX)
    try:
        return os.read(queue, _NUMBER)
    finally:
        fcntl.lockf(queue, fcntl.LOCK_UN)


def _is_single() -> bool:
    """Say whether this process has one thread: a copy has no other, and would wait for ever for what those hold."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:  # /proc is not there: nobody knows
        return False


def _start(share: Iterable[int], items: Sequence[Any], work: Callable[[Any], Any]) -> _Worker:
    first = os.getpid()
    reads, writes = os.pipe()
    try:
        process = os.fork()
    except OSError:
        os.close(reads)
        os.close(writes)
        raise
    if process:
        os.close(writes)
        return _Worker(process, reads)
    status = 1
    try:  # whatever happens, this process must not go on as if it were the first
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # progress is for the first one to show
        data = _done(share, items, work, first)
        with os.fdopen(writes, "wb") as pipe:
            pipe.write(data)
        status = 0
    finally:
        os._exit(status)


def _done(share: Iterable[int], items: Sequence[Any], work: Callable[[Any], Any], first: int) -> bytes:
    """Do a share of the work, and return what comes of it, or what went wrong, as it is sent to the first process."""
    import pickle  # only where there are copies

    results: dict[int, Any] = {}
    try:
        for each in share:
            if os.getppid() != first:  # it was killed: nobody waits for the rest
                raise SystemExit
            results[each] = work(items[each])
        return pickle.dumps((results, WITNESS.get()), pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        raise
    except Exception:
        import traceback

        return pickle.dumps((traceback.format_exc(), None))


def _results(worker: _Worker) -> dict[int, Any]:
    import pickle

    chunks: list[bytes] = []
    while chunk := os.read(worker.pipe, 1 << 20):
        chunks.append(chunk)
    try:
        results, witness = pickle.loads(b"".join(chunks))
    except (EOFError, pickle.UnpicklingError):
        raise Died("a process that checked some of the files ended before it was done; is there enough memory?") from None
    if isinstance(results, str):
        raise RuntimeError(f"in another process:\n{results}")
    if (own := WITNESS.get()) is not None and witness is not None:
        own.join(witness)
    return results

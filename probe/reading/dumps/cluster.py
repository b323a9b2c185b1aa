# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Does the same work for many dumps on a Dask cluster. Every worker must see the dumps at the same path."""

from __future__ import annotations

import asyncio
import functools
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import foreign
from probe.process.progress import progress
from probe.reading.dumps.folders import DumpFolder

#: does a function for a unit, and returns the pickled result
Run = Callable[[Callable[..., Any], tuple[Any, ...]], bytes]
#: seconds: to reach the scheduler, until a worker must be there, without any worker, and between two looks for one
_REACH = 15
_WORKERS = 60
_GONE = 60
_LOOK = 5
#: the number of units that wait on the cluster for each thread of its workers
_AHEAD = 4


def run_on_cluster(
    run: Run,
    function: Callable[..., Any],
    units: Sequence[tuple[Any, ...]],
    scheduler: str,
    label: str,
) -> Iterator[bytes]:
    """Yield the pickled result of a function for each unit, in their order, from the workers of a Dask cluster.

    A unit of a worker that is lost goes to another one. If one unit loses many workers, the work ends. The function is
    one of a module, so that the workers find it; ``run`` does it for one unit. The scheduler is as tcp://10.0.0.1:8786.
    Raise UsageError when the cluster cannot be reached, loses its workers, or does not see a dump.
    """
    client = _connect(scheduler)
    waiting: list[Any] = []
    try:
        ahead = _AHEAD * _count_threads(client, scheduler)
        _check_installed(client)
        rest = iter(
            [
                tuple(it.absolute() if isinstance(it, DumpFolder) else it for it in unit)
                for unit in units
            ]
        )
        for _ in progress(units, label):
            for unit in rest:
                waiting.append(client.submit(run_there, run, function, unit, pure=False))
                if len(waiting) >= ahead:
                    break
            result: bytes = _wait(client, waiting.pop(0), scheduler)
            yield result
    finally:
        for future in waiting:
            future.cancel()
        client.close(timeout=_REACH)


def run_there(run: Run, function: Callable[..., Any], unit: tuple[Any, ...]) -> bytes:
    """Do one unit on a worker, and return the pickled result; raise UsageError when it does not see a folder."""
    for folder in _folders(unit):
        if not os.path.isdir(folder):
            raise UsageError(say("error.worker_blind", host=socket.gethostname(), folder=folder))
    return run(function, unit)


def _folders(unit: tuple[Any, ...]) -> Iterator[str]:
    for part in unit:
        yield from [part.path] if isinstance(part, DumpFolder) else []
        yield from (os.path.dirname(path) for path, _ in getattr(part, "rows", ()))


def _connect(scheduler: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise UsageError(say("error.dask")) from None
    connect = functools.partial(Client, scheduler, timeout=_REACH, set_as_default=False)
    try:
        try:
            return connect()
        except (
            AssertionError
        ):  # Dask gives its own thread ten seconds to start: too few on a machine that stalls
            return connect()
    except (OSError, asyncio.TimeoutError, ValueError, TypeError) as error:
        raise UsageError(
            say("error.scheduler", address=scheduler, reason=foreign(" ".join(str(error).split())))
        ) from None


def _count_threads(client: Any, scheduler: str) -> int:
    """Return how many threads the workers have together; raise UsageError when no worker comes."""
    try:
        client.wait_for_workers(1, timeout=_WORKERS)
    except (OSError, TimeoutError, asyncio.TimeoutError):  # two classes below Python 3.11
        raise UsageError(say("error.no_worker", address=scheduler)) from None
    return sum(client.nthreads().values()) or 1


def _check_installed(client: Any) -> None:
    """Raise UsageError when the scheduler or a worker cannot import this module: it could not say so itself."""

    def has_probe() -> (
        bool
    ):  # a function in a function travels by its content, so that it runs where probe is missing
        try:
            import probe.reading.dumps.folders  # noqa: F401
        except ImportError:
            return False
        return True

    found = {"the scheduler": client.run_on_scheduler(has_probe), **client.run(has_probe)}
    missing = [place for place, is_there in found.items() if not is_there]
    if missing:
        raise UsageError(
            say("error.not_installed", places=[*missing[:4], *["..."] * (len(missing) > 4)])
        )


def _wait(client: Any, future: Any, scheduler: str) -> Any:
    """Return a future's result; raise UsageError when it never will be there."""
    from distributed import KilledWorker

    last_seen = time.monotonic()
    while True:
        if future.done() or client.nthreads():
            last_seen = time.monotonic()
        if time.monotonic() - last_seen > _GONE:
            raise UsageError(say("error.workers_gone", address=scheduler, seconds=_GONE))
        try:
            return future.result(timeout=_LOOK)
        except (TimeoutError, asyncio.TimeoutError):  # two classes below Python 3.11
            continue
        except KilledWorker as error:
            raise UsageError(
                say(
                    "error.workers_ended",
                    address=scheduler,
                    reason=foreign(" ".join(str(error).split())),
                )
            ) from None
        except CancelledError:
            raise UsageError(say("error.connection", address=scheduler)) from None

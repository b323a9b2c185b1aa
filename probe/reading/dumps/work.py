# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Does the same work for many dumps: in this process, in several, or on a cluster, with a progress line."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, Sentence, say
from probe.process.isolated import cores
from probe.process.progress import progress

Result = TypeVar("Result")
#: the number of units that may wait for a process; a result is kept only until it is taken
_AHEAD = 4


class Workers(NamedTuple):
    """The processes that work."""

    jobs: int = 1  # how many there are; 1 means this one, 0 as many as there are cores
    scheduler: str = ""  # the address of a Dask scheduler, whose workers do it instead; "" for none
    language: str = ENGLISH  # of the progress line


HERE = Workers()


def run_unit(function: Callable[..., Any], unit: tuple[Any, ...]) -> bytes:
    """Do one unit in a process that does many, and return the pickled result."""
    try:
        return pickle.dumps(function(*unit))
    finally:
        gc.collect()  # small objects of a result would keep the large areas of memory around them


def run_units(
    function: Callable[..., Result],
    units: Sequence[tuple[Any, ...]],
    workers: Workers = HERE,
    label: Sentence | None = None,
) -> Iterator[Result]:
    """Yield the result of a function for each unit, in their order.

    The function is one of a module, so that other processes find it. Raise UsageError when a process ended, as for want
    of memory, or the cluster cannot do it.
    """
    told = (label or say("progress.comparing")).text(workers.language)
    if workers.scheduler:
        from probe.reading.dumps.cluster import run_on_cluster

        yield from map(
            pickle.loads, run_on_cluster(run_unit, function, units, workers.scheduler, told)
        )
        return
    jobs = min(workers.jobs or cores(), len(units))
    if jobs <= 1:
        for unit in progress(units, told):
            yield function(*unit)
        return
    import multiprocessing
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting: list[Future[bytes]] = []
        rest = iter(units)
        try:
            for _ in progress(units, told):
                for unit in rest:
                    waiting.append(pool.submit(run_unit, function, unit))
                    if len(waiting) >= jobs * _AHEAD:
                        break
                yield pickle.loads(waiting.pop(0).result())
        except BrokenProcessPool:
            raise UsageError(say("error.process")) from None
        finally:
            for future in waiting:
                future.cancel()

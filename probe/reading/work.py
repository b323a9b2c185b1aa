# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Does the same work for many dumps: in this process, or in several, with a progress line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from probe.errors import UsageError
from probe.process.progress import progress

Result = TypeVar("Result")
#: the number of units that may wait for a process; a result is kept only until it is taken
_AHEAD = 4


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def run_units(
    function: Callable[..., Result], units: Sequence[tuple[Any, ...]], jobs: int = 1, label: str = "comparing"
) -> Iterator[Result]:
    """Yield the result of a function for each unit, in their order.

    Args:
        function: of a module, so that other processes find it.
        units: its arguments.
        jobs: how many processes work; 1 means this one, 0 as many as there are cores.
        label: the word of the progress line.

    Raises:
        UsageError: when a process ended, as for want of memory.
    """
    jobs = min(jobs or cores(), len(units))
    if jobs <= 1:
        for unit in progress(units, label):
            yield function(*unit)
        return
    import multiprocessing
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting: list[Future[Result]] = []
        rest = iter(units)
        try:
            for _ in progress(units, label):
                for unit in rest:
                    waiting.append(pool.submit(function, *unit))
                    if len(waiting) >= jobs * _AHEAD:
                        break
                yield waiting.pop(0).result()
        except BrokenProcessPool:
            raise UsageError("a process ended before it was done, perhaps for want of memory; try --jobs 1") from None
        finally:
            for future in waiting:
                future.cancel()

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Gives calls to worker processes; a process that crashes or hangs loses one call, and is replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Union

from probe.findings.sentence import Sentence, say
from probe.process.isolated import EndedError, Isolated, cores
from probe.replaying.described import CallDescription, Made, Program, ReplayResult, not_replayed
from probe.replaying.judging import Judged

#: the seconds in which a process has to have imported MindSpore
_START_LIMIT = 300.0
#: a process makes so many calls: what they leave behind does not grow
_MOST_CALLS = 1000
#: settings under which calls that differ are made again, in this order -> their form in a training
SETTINGS = {"deterministic": "mindspore.set_deterministic(True)", "threads": "OMP_NUM_THREADS=1, runtime_num_threads=1"}

#: the verdicts on a call, or its outputs on another device
Answer = Union[ReplayResult, Made]


class Pool:
    """Some processes that make calls again, each within a limit of seconds; of ``jobs`` 0 means one for each core."""

    def __init__(self, jobs: int, options: dict[str, str], limit: float) -> None:
        self._jobs, self._options, self._limit = jobs or cores(), options, limit
        #: the processes that wait for a call, and how many calls each has made
        self._idle: list[tuple[Isolated, int]] = []
        self._failure: ReplayResult | None = None

    def run(self, calls: Sequence[CallDescription | Program]) -> Iterator[tuple[int, Answer]]:
        """Yield the number of a call and its result, in the order in which they end."""
        jobs = max(1, min(self._jobs, len(calls)))
        threads = ThreadPoolExecutor(jobs)
        try:
            share = str(1 if self._options.get("setting") == "threads" else max(1, cores() // jobs))
            numbers = {threads.submit(self._answer, call, share): number for number, call in enumerate(calls)}
            for done in as_completed(numbers):
                yield numbers[done], done.result()
        finally:
            threads.shutdown(cancel_futures=True)
            for process, _ in self._idle:
                process.close()

    def _answer(self, call: CallDescription | Program, share: str) -> Answer:
        """Return the answer of a process, or why there is none."""
        if self._failure:
            return self._failure
        try:
            process, count = self._idle.pop()
        except IndexError:
            process, count = Isolated("probe.replaying.worker:main", self._options, OMP_NUM_THREADS=share), 0
        limit = _START_LIMIT
        try:
            if not count:
                process.receive(limit)
            limit, count = self._limit, count + 1
            process.send(_plain(call))
            answer = _read(process.receive(limit))
        except (TimeoutError, EndedError) as error:
            process.close()
            lost = not_replayed(_reason(error, limit))
            if not count:  # one that cannot start will not start later either
                self._failure = lost
            return lost
        if count < _MOST_CALLS:
            self._idle.append((process, count))
        else:
            process.close()
        return answer


def _reason(error: Exception, limit: float) -> Sentence:
    if not isinstance(error, EndedError):
        return say("replay.limit", seconds=limit)
    signal = max(-error.status, 0)
    return say("replay.signal", signal=signal) if signal else say("replay.status", status=error.status)


def _plain(call: CallDescription | Program) -> dict[str, Any]:
    """Return a description as JSON has it; without the parts that it has not."""
    here = {"here": call.here._asdict()} if isinstance(call, CallDescription) and call.here else {}
    return {**{name: value for name, value in call._asdict().items() if value is not None}, **here}


def _read(answer: dict[str, Any]) -> Answer:
    if "here" in answer:
        return Made(**answer["here"])
    outputs = [Judged(**{**item, "said": Sentence.from_dict(item["said"])}) for item in answer["outputs"]]
    return ReplayResult(**{**answer, "reason": Sentence.from_dict(answer["reason"]), "outputs": outputs})

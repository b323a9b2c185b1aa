# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Faults of a run that other readers see: a command of one reader names them too.

An answer that begins with "no NaN/Inf" must not stand over a run whose ranks disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.dumps import text
from probe.reading.dumps.work import HERE, Workers
from probe.reading.one_run.health.run_check import RunCheck, check_run
from probe.reading.one_run.health.step import FAULT, HealthFinding


def faults_of_others(
    path: str, is_own: Callable[[HealthFinding], bool], workers: Workers = HERE
) -> list[HealthFinding]:
    """Return the faults of all rules in a run, without those that the command itself tells."""
    try:
        found: RunCheck = check_run(path, workers)
    except UsageError:
        return []  # the command itself says why nothing can be read
    return [item for item in found.findings if item.weight == FAULT and not is_own(item)]


def headline(faults: Sequence[Sentence]) -> Sentence:
    """Return the heaviest fault, and how many others there are; nothing without a fault."""
    if not faults:
        return NOTHING
    others = len(faults) - 1
    more = say("report.other") if others == 1 else say("report.others", count=others)
    return say("report.found", finding=faults[0], more=more if others else NOTHING)


def print_before(faults: Sequence[HealthFinding], language: str) -> None:
    """Print the heaviest fault of other readers as the first line of an answer that has no finding of its own."""
    if faults:
        print(text.safe(headline([item.whole for item in faults]).text(language)))


def print_behind(faults: Sequence[HealthFinding], path: str, language: str) -> None:
    """Print behind findings of the command how many faults other readers see."""
    if faults:
        print(text.safe(say("others.count", count=len(faults), path=path).text(language)))

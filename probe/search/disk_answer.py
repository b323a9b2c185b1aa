# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The answer of ``probe find DIR``: the heaviest finding of all readers, its evidence, and the next command."""

from __future__ import annotations

from probe.findings.sentence import Sentence, say
from probe.reading.compare.origins.origin import Kind
from probe.search.advice import advice
from probe.search.answer import FIRST_LINE, Diagnosis, Evidence
from probe.search.cause import (
    BITS,
    COMPARED,
    GUESS,
    HEALTH,
    LINES,
    NONFINITE,
    RANKS,
    REPLAYED,
    WATCHED,
    Cause,
)
from probe.search.on_disk import DiskLook
from probe.search.unheld import FROZEN, UNHELD

#: how many differences of the circumstances are told
_MOST = 3
#: the reader -> the sentence about its evidence
_BY = {
    COMPARED: "find.by_compare",
    NONFINITE: "find.by_nan",
    RANKS: "find.by_ranks",
    WATCHED: "find.by_watch",
    LINES: "find.by_lines",
    REPLAYED: "find.by_replay",
}


def diagnosis_of(seen: DiskLook, path: str, golden: str = "") -> Diagnosis:
    """Return the answer about what is on disk alone.

    Args:
        seen: the answer of the readers.
        path: the run.
        golden: the golden run beside it; "" for none.
    """
    cause = seen.cause
    evidence = [evidence_of(cause)] if cause is not None else []
    if cause is None:
        evidence += [
            Evidence(GUESS, say("find.suspicious", said=item.said))
            for item in seen.suspicions[:_MOST]
        ]
    if seen.status:
        evidence += [
            Evidence(GUESS, say("find.by_circumstances", said=said))
            for said in seen.circumstances[:_MOST]
        ]
    return Diagnosis(
        seen.status,
        _said(seen),
        cause,
        evidence=evidence,
        excluded=_excluded(seen, golden),
        gaps=_gaps(seen),
        others=seen.others,
        remarks=seen.remarks,
        advice=advice(seen, path, golden),
    )


def evidence_of(cause: Cause) -> Evidence:
    """Return why a reader names a cause."""
    if cause.strength == BITS:
        return Evidence(BITS, say("find.by_bits"))
    if cause.reader == LINES and cause.kind == Kind.DATA:
        return Evidence(GUESS, say("find.by_values"))
    if cause.reader == LINES and not cause.file:
        return Evidence(GUESS, say("find.by_numbers"))
    if cause.reader == HEALTH:
        return Evidence(cause.strength, _by_check(cause))
    return Evidence(cause.strength, say(_BY[cause.reader]))


def _by_check(cause: Cause) -> Sentence:
    """Return why a look at one run, or at the optimizers of two, names a cause."""
    if cause.kind in (UNHELD, FROZEN):
        return say("find.by_unheld")
    key = "find.by_suspicion" if cause.strength == GUESS else "find.by_check"
    return say(key, rule=cause.kind)


def _gaps(seen: DiskLook) -> list[Sentence]:
    """Return the parts that cannot be known, but those which the first line tells."""
    gaps = doubts(seen, seen.said)
    return [*gaps, *seen.gaps] if seen.cause is not None else gaps


def doubts(seen: DiskLook, said: Sentence) -> list[Sentence]:
    """Return that the difference of two runs may be chance; nothing where the first line tells it."""
    if not seen.doubt or said == seen.doubt:
        return []
    return [say(FIRST_LINE["unknown"], said=seen.doubt)]


def _excluded(seen: DiskLook, golden: str) -> list[Sentence]:
    """Return what the golden run has excluded: a difference, where one run alone shows the cause."""
    cause = seen.cause
    is_of_one_run = cause is not None and cause.reader != COMPARED and not seen.is_apart
    return [say("find.no_difference")] if golden and is_of_one_run else []


def _said(seen: DiskLook) -> Sentence:
    """Return the first line: of a cause its own sentence, with the step where it is known."""
    cause = seen.cause
    if cause is None:
        return seen.said
    if cause.step is None:
        return cause.said
    return say("guard.at", where=say("nan.step", step=cause.step), said=cause.said)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Leaves out the calls that only one level records: they are no difference of the trainings."""

from __future__ import annotations

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, CELL, GRADIENT, parse
from probe.reading.dumps.updates import is_update

_KINDS = (API, CELL, GRADIENT)
#: kind of call -> its names
_Names = dict[str, list[str]]


def leave_out_unrecorded(a: NormalDump, b: NormalDump) -> Sentence:
    """Leave out calls of a kind that the level of the other dump does not record; return a remark, if one is needed."""
    level_a = a.header.get("level")
    level_b = b.header.get("level")
    if level_a == level_b or level_a is None or level_b is None:
        return NOTHING
    kinds_a = _kinds(a)
    kinds_b = _kinds(b)
    # L0 and L1 have hardly a call in common: they cannot be compared
    if kinds_b and kinds_b.keys() < kinds_a.keys():
        side = "A"
        count = _leave_out(a, kinds_a, kinds_b)
    elif kinds_a and kinds_a.keys() < kinds_b.keys():
        side = "B"
        count = _leave_out(b, kinds_b, kinds_a)
    else:
        return NOTHING
    return say("compare.levels", left=level_a, right=level_b, calls=count, side=side)


def _leave_out(dump: NormalDump, kinds: _Names, others: _Names) -> int:
    """Leave out the calls of kinds that the other dump lacks, and return how many."""
    count = 0
    for kind in kinds.keys() - others.keys():
        for name in kinds[kind]:
            del dump.data[name]
            count += 1
    return count


def _kinds(dump: Dump) -> _Names:
    """Return kind of call -> its names; every level records updates."""
    found: _Names = {}
    for name, entry in dump.data.items():
        parts = parse(name)
        if parts.kind in _KINDS and not is_update(parts, entry):
            found.setdefault(parts.kind, []).append(name)
    return found

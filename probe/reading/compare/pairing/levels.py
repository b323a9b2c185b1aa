# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Leaves out the calls that only one level records: they are no difference of the trainings."""

from __future__ import annotations

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, CELL, GRADIENT, parse
from probe.reading.dumps.updates import is_update

_KINDS = (API, CELL, GRADIENT)


def leave_out_unrecorded(a: NormalDump, b: NormalDump) -> Sentence:
    """Leave out calls of a kind that the level of the other dump does not record; return a remark, if one is needed."""
    level_a = a.header.get("level")
    level_b = b.header.get("level")
    if level_a == level_b or level_a is None or level_b is None:
        return NOTHING
    kinds_a = _kinds(a)
    kinds_b = _kinds(b)
    side = "A" if kinds_b.keys() < kinds_a.keys() else "B"
    dump, more, fewer = (a, kinds_a, kinds_b) if side == "A" else (b, kinds_b, kinds_a)
    if not (fewer and fewer.keys() < more.keys()):
        # L0 and L1 have hardly a call in common: they cannot be compared
        return NOTHING
    names = [name for kind in more.keys() - fewer.keys() for name in more[kind]]
    for name in names:
        del dump.data[name]
    return say("compare.levels", left=level_a, right=level_b, calls=len(names), side=side)


def _kinds(dump: Dump) -> dict[str, list[str]]:
    """Return kind of call -> its names; every level records updates."""
    found: dict[str, list[str]] = {}
    for name, entry in dump.data.items():
        parts = parse(name)
        if parts.kind in _KINDS and not is_update(parts, entry):
            found.setdefault(parts.kind, []).append(name)
    return found

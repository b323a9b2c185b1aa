# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Two dumps of other levels: the calls that only one level records are no difference of the trainings."""

from __future__ import annotations

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, CELL, GRADIENT, parse
from probe.reading.dumps.updates import is_update


def leave_out_unrecorded(a: NormalDump, b: NormalDump) -> Sentence:
    """Leave out calls of a kind that the level of the other dump does not record; return a remark, if one is needed.

    Args:
        a: A.
        b: B.
    """
    levels = [dump.header.get("level") for dump in (a, b)]
    if levels[0] == levels[1] or None in levels:
        return NOTHING
    of_a, of_b = _kinds(a), _kinds(b)
    side = "A" if of_b.keys() < of_a.keys() else "B" if of_a.keys() < of_b.keys() else ""
    if not (side and of_a and of_b):  # L0 and L1 have hardly a call in common: they cannot be compared
        return NOTHING
    dump, own, other = (a, of_a, of_b) if side == "A" else (b, of_b, of_a)
    names = [name for kind in own.keys() - other.keys() for name in own[kind]]
    for name in names:
        del dump.data[name]
    return say("compare.levels", left=levels[0], right=levels[1], calls=len(names), side=side)


def _kinds(dump: Dump) -> dict[str, list[str]]:
    """Return kind of call -> its names; every level records updates."""
    found: dict[str, list[str]] = {}
    for name, entry in dump.data.items():
        parts = parse(name)
        if parts.kind in (API, CELL, GRADIENT) and not is_update(parts, entry):
            found.setdefault(parts.kind, []).append(name)
    return found

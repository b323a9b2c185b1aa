# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Two dumps of other levels: the calls that only one level records are no difference of the trainings."""

from __future__ import annotations

from probe.reading.dump import Dump
from probe.reading.entry_name import API, CELL, GRADIENT, parse
from probe.reading.updates import is_update


def leave_out_unrecorded(a: Dump, b: Dump) -> str:
    """Leave out calls of a kind that the level of the other dump does not record; return a remark, "" where none is.

    Args:
        a: A; its entries are changed.
        b: B; its entries are changed.
    """
    levels = [dump.header.get("level") for dump in (a, b)]
    if levels[0] == levels[1] or None in levels:
        return ""
    of_a, of_b = _kinds(a), _kinds(b)
    said = []
    for dump, own, other, side in ((a, of_a, of_b, "A"), (b, of_b, of_a, "B")):
        names = [name for kind in own.keys() - other.keys() for name in own[kind]] if other else []
        for name in names:
            del dump.data[name]
        said += [f"{len(names)} calls of {side}"] if names else []
    return f"A has level {levels[0]}, B has {levels[1]}: {' and '.join(said)} are left out" if said else ""


def _kinds(dump: Dump) -> dict[str, list[str]]:
    """Return kind of call -> its names; every level records updates."""
    found: dict[str, list[str]] = {}
    for name, entry in dump.data.items():
        parts = parse(name)
        if parts.kind in (API, CELL, GRADIENT) and not is_update(parts, entry):
            found.setdefault(parts.kind, []).append(name)
    return found

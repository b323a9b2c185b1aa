# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Cells that are not in training mode although an optimizer runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from probe.findings.sentence import say
from probe.reading.check.snapshot import RunSnapshot
from probe.reading.one_run.health.finding import FAULT, NOTE, SUSPICIOUS, HealthFinding, some

#: Cells that compute something else in training mode
_BY_MODE = re.compile(r"BatchNorm|Dropout|DropPath|StochasticDepth|DropBlock", re.IGNORECASE)


def modes(snapshot: RunSnapshot, steps: list[int], held: set[str]) -> Iterator[HealthFinding]:
    """Yield Cells in the wrong mode; ``steps`` are those with an update of the parameters ``held``."""
    cells = snapshot.cells
    #: outermost Cell that is not in training mode -> the steps, the Cells below it that the mode changes
    found: dict[str, tuple[list[int], list[str]]] = {}
    for step in steps:
        evaluating = [path for path in snapshot.evaluating(step) if path in cells]
        for top in _outermost(evaluating):
            changed = [path for path in evaluating if _is_below(path, top) and _differs(snapshot, path)]
            if changed:
                found.setdefault(top, ([], changed))[0].append(step)
    trained = {str(item.get("cell") or "") for name, item in snapshot.parameters.items() if name in held}
    roots = {""} if "" in cells else {path for path in cells if "." not in path}
    for top, (where, changed) in found.items():
        first = where[0]
        kind = cells[top]
        facts = {"cell": f"{top} ({kind})" if top else kind, "names": some(changed), "step": first}
        if not any(_is_below(path, top) for path in trained):
            continue  # frozen on purpose: nothing in it is trained
        if top in roots and first > steps[0]:
            yield HealthFinding(FAULT, "mode", say("health.no_return", **facts), "", first)
        elif top in roots:
            yield HealthFinding(FAULT, "mode", say("health.never_training", **facts), "", first)
        else:
            norms = [path for path, name in cells.items() if "BatchNorm" in name]
            all_norms = len(norms) > 1 and set(norms) <= {path for item in found.values() for path in item[1]}
            yield HealthFinding(
                NOTE if all_norms else SUSPICIOUS, "mode", say("health.other_mode", **facts), top, first
            )


def _outermost(paths: list[str]) -> list[str]:
    known = set(paths)
    return [path for path in paths if not any(above in known for above in _above(path))]


def _above(path: str) -> Iterator[str]:
    """Yield the paths of the Cells around a Cell; that of the model is ""."""
    while path:
        path = path.rpartition(".")[0]
        yield path


def _is_below(path: str, top: str) -> bool:
    return not top or path == top or path.startswith(f"{top}.")


def _differs(snapshot: RunSnapshot, path: str) -> bool:
    """Return whether a Cell computes something else in training mode."""
    kind, values = snapshot.cells[path], snapshot.cell_values.get(path, {})
    if not _BY_MODE.search(kind):
        return False
    rates = [
        values[key] for key in ("p", "drop_prob", "rate", "drop_rate") if isinstance(values.get(key), (int, float))
    ]
    return "BatchNorm" in kind or not rates or any(rates)

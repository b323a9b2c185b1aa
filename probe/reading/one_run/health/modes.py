# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Cells in wrong modes: a model that stays in evaluation mode, and Cells that another mode was left in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from probe.findings.sentence import say
from probe.reading.check.difference import listed
from probe.reading.check.snapshot import RunSnapshot
from probe.reading.one_run.health.step import FAULT, NOTE, SUSPICIOUS, HealthFinding

#: Cells that compute something else in training mode
_BY_MODE = re.compile(r"BatchNorm|Dropout|DropPath|StochasticDepth|DropBlock", re.IGNORECASE)


def trained_models(snapshot: RunSnapshot, steps: Sequence[int]) -> dict[str, str]:
    """Return the paths of the models that are in training mode in one of the steps, with their classes.

    A lone model is left out.
    """
    cells = snapshot.cells
    if "" in cells:
        return {}
    models = {path: kind for path, kind in cells.items() if path.isdigit()}
    evaluating = [set(snapshot.evaluating(step)) for step in steps]
    always = set.intersection(*evaluating) if evaluating else {*models}
    return {path: kind for path, kind in models.items() if path not in always}


class _Evaluating(NamedTuple):
    """A Cell that is not in training mode, and is in no other such one."""

    steps: list[int]
    changed: list[str]  # the Cells in it that the mode changes, in the first of the steps


def modes(snapshot: RunSnapshot, held: Mapping[int, Set[str]]) -> Iterator[HealthFinding]:
    """Yield Cells in the wrong mode; ``held`` has the parameters that each step with an update has updated."""
    cells = snapshot.cells
    trained = {step: _cells_of(snapshot, names) for step, names in held.items()}
    evaluating = _evaluating(snapshot, trained)
    roots = {""} if "" in cells else {path for path in cells if "." not in path}
    for top, own in evaluating.items():
        first = own.steps[0]
        kind = cells[top]
        facts = {
            "cell": f"{top} ({kind})" if top else kind,
            "names": listed(dict.fromkeys(own.changed)),
            "step": first,
        }
        if top in roots:
            was_trained = any(step < first for step in _steps_of(top, trained))
            key = "health.no_return" if was_trained else "health.never_training"
            yield HealthFinding(FAULT, "mode", say(key, **facts), "", first)
        else:
            weight = NOTE if _are_all_norms(cells, evaluating.values()) else SUSPICIOUS
            yield HealthFinding(weight, "mode", say("health.other_mode", **facts), top, first)


def frozen_norms(snapshot: RunSnapshot, steps: Sequence[int]) -> Iterator[HealthFinding]:
    """Yield frozen Cells whose BatchNorms are in training mode: their moving statistics go on to change."""
    cells = snapshot.cells
    trained = _cells_of(
        snapshot, {name for name, item in snapshot.parameters.items() if item["trainable"]}
    )
    frozen = {
        path
        for path in _cells_of(snapshot, snapshot.parameters.keys())
        if not any(is_below(own, path) for own in trained)
    }
    learning = [
        path
        for path in sorted(frozen)
        if "BatchNorm" in cells.get(path, "")
        and not any(path in snapshot.evaluating(step) for step in steps)
    ]
    told: dict[str, list[str]] = {}
    for path in learning:
        tops = [above for above in _above(path) if above in cells and above]
        still = [above for above in tops if not any(is_below(own, above) for own in trained)]
        told.setdefault(still[-1] if still else path, []).append(path)
    for top, names in told.items() if trained else ():
        said = say("health.frozen_norm", cell=f"{top} ({cells[top]})", names=listed(names))
        yield HealthFinding(NOTE, "mode", said, top, steps[0])


def _cells_of(snapshot: RunSnapshot, held: Set[str]) -> set[str]:
    """Return the Cells of parameters."""
    cells = set()
    for name, item in snapshot.parameters.items():
        if name in held:
            cells.add(str(item.get("cell") or ""))
    return cells


def _steps_of(top: str, trained: Mapping[int, Set[str]]) -> list[int]:
    """Return the steps that update a parameter of a Cell, or of one in it."""
    return [step for step, cells in trained.items() if any(is_below(cell, top) for cell in cells)]


def _evaluating(snapshot: RunSnapshot, trained: Mapping[int, Set[str]]) -> dict[str, _Evaluating]:
    """Return the outermost Cells that are trained outside of training mode, and hold Cells that the mode changes.

    A Cell that a step does not train may be frozen on purpose: a teacher, or a discriminator in the turn of its
    generator.
    """
    cells = snapshot.cells
    found: dict[str, _Evaluating] = {}
    for step in trained:
        evaluating = [path for path in snapshot.evaluating(step) if path in cells]
        by_mode = [path for path in evaluating if _differs(snapshot, path)]
        for top in _outermost(evaluating):
            changed = [path for path in by_mode if is_below(path, top)]
            if changed and step in _steps_of(top, trained):
                found.setdefault(top, _Evaluating([], changed)).steps.append(step)
    return found


def _are_all_norms(cells: Mapping[str, str], evaluating: Iterable[_Evaluating]) -> bool:
    """Return whether all BatchNorms are out of training mode: frozen on purpose."""
    norms = {path for path, kind in cells.items() if "BatchNorm" in kind}
    changed = {path for own in evaluating for path in own.changed}
    return len(norms) > 1 and norms <= changed


def _outermost(paths: list[str]) -> list[str]:
    known = set(paths)
    return [path for path in paths if known.isdisjoint(_above(path))]


def _above(path: str) -> Iterator[str]:
    """Yield the paths of the Cells around a Cell; that of the model is ""."""
    while path:
        path = path.rpartition(".")[0]
        yield path


def is_below(path: str, top: str) -> bool:
    """Return whether a Cell is another one, or in it; the model's path is ""."""
    return not top or path == top or path.startswith(f"{top}.")


def _differs(snapshot: RunSnapshot, path: str) -> bool:
    """Return whether the mode changes a Cell; a dropout with a rate of 0 is the same in both."""
    kind = snapshot.cells[path]
    if not _BY_MODE.search(kind):
        return False
    values = snapshot.cell_values.get(path, {})
    known = [values.get(key) for key in ("p", "drop_prob", "rate", "drop_rate")]
    rates = [rate for rate in known if isinstance(rate, (int, float))]
    return "BatchNorm" in kind or not rates or any(rates)

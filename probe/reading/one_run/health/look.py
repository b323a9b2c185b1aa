# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Looks at one run alone: all rules, over all its steps and ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from probe.reading.check.snapshot import RunSnapshot, Snapshots
from probe.reading.dumps.dump import Dump, look_into_dump
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.run import Run
from probe.reading.dumps.work import HERE, Workers, run_units
from probe.reading.one_run.health import in_place, losses, numbers, training
from probe.reading.one_run.health.step import FAULT, NOTE, WEIGHTS, HealthFinding, Step, guarded
from probe.reading.one_run.health.training import modes
from probe.reading.one_run.nan import Finder
from probe.store.file_names import Rank

#: rules in the order in which their findings explain each other
_ORDER = ("guard", "NaN/Inf", "loss", "mode", "gradient ends", "unused", "zero gradient", "not held", "no update",
          "not updated", "in place", "numbers", "decay")  # fmt: skip


class Looked(NamedTuple):
    """The facts of one step of one rank."""

    step: int | None
    rank: Rank
    trained: training.Trained
    lost: losses.Lost
    kept: in_place.Kept
    numbers: list[HealthFinding]
    nan: HealthFinding | None  # the first call that makes NaN/Inf


def look_at_run(run: Run, workers: Workers = HERE) -> tuple[list[HealthFinding], list[str]]:
    """Return what a run shows by itself, the heaviest first, and the reasons why dumps could not be read."""
    snapshots = Snapshots(run.path)
    units = [(folder, snapshots) for folder in run.folders]
    looked = list(run_units(look, units, workers, "looking at one run"))
    errors = [item for item in looked if isinstance(item, str)]
    return findings_of([item for item in looked if isinstance(item, Looked)], snapshots, run.folders), errors


def findings_of(steps: Sequence[Looked], snapshots: Snapshots, folders: Sequence[DumpFolder]) -> list[HealthFinding]:
    """Return the findings in the steps of all ranks, and those that guards have told, the heaviest first."""
    found = [guarded(said, folder.step, folder.rank) for folder in folders for said in folder.told()]
    for rank in dict.fromkeys(item.rank for item in steps):
        found += over_steps([item for item in steps if item.rank == rank], snapshots.of_rank(rank))
    return in_order(found)


def look(folder: DumpFolder, snapshots: Snapshots) -> Looked | str:
    """Return the facts of one step of one rank, or the reason why it cannot be read."""
    return look_into_dump(folder, lambda dump: look_into(dump, snapshots.of_rank(folder.rank)), str)


def look_into(dump: Dump, snapshot: RunSnapshot | None) -> Looked:
    """Return the facts of a step; raise UsageError when it cannot be read."""
    step = Step(dump, snapshot)
    origin = next(Finder(dump).origins(), None)
    nan = step.found(FAULT, "NaN/Inf", origin.said, dump.flow.position[origin.name]) if origin else None
    return Looked(
        dump.step, dump.rank, training.facts(step), losses.facts(step), in_place.facts(step),
        list(numbers.in_step(step)), nan,
    )  # fmt: skip


def over_steps(steps: Sequence[Looked], snapshot: RunSnapshot | None) -> list[HealthFinding]:
    """Return the findings in the steps of one rank."""
    trainable = training.trainable_cells(snapshot.parameters) if snapshot else {}
    found = [*_nan(steps), *losses.over_steps([item.lost for item in steps])]
    found += training.TrainingRules([item.trained for item in steps], trainable)
    if snapshot is not None:
        with_update = [item.step for item in steps if item.trained.held and item.step is not None]
        found += modes(snapshot, with_update, {name for item in steps for name in item.trained.held})
    found += in_place.over_steps([item.kept for item in steps])
    for item in steps:
        found += [*item.lost.found, *item.kept.found, *item.numbers]
    return [dataclasses.replace(item, rank=steps[0].rank) for item in found]


def _nan(steps: Sequence[Looked]) -> list[HealthFinding]:
    """Return the first NaN/Inf: what follows from it in later steps is not told again.

    If the steps with NaN/Inf have no update, and others have one, a loss scaler has left them out.
    """
    strange = [item for item in steps if item.nan is not None]
    is_skipped = any(item.trained.held for item in steps) and not any(item.trained.held for item in strange)
    return [dataclasses.replace(item.nan, weight=NOTE if is_skipped else FAULT) for item in strange[:1] if item.nan]


def in_order(found: Sequence[HealthFinding]) -> list[HealthFinding]:
    """Return findings, the heaviest first; those of one line of code once."""
    kept: dict[Any, HealthFinding] = {}
    for item in found:
        key = item.rule, item.said.key, item.file, item.line or item.name or str(item.said)
        known = kept.get(key)
        is_again = known is not None and known.name == item.name
        kept[key] = item if known is None else dataclasses.replace(known, more=known.more + (not is_again))
    return sorted(kept.values(), key=lambda item: (WEIGHTS.index(item.weight), _ORDER.index(item.rule)))

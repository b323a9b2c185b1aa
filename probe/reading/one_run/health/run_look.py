# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""All rules over all steps and ranks of one run: the facts of each step, then the findings over the steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence, Set
from typing import Any, NamedTuple, Optional

from probe.findings.sentence import Sentence, say
from probe.reading.check.difference import listed
from probe.reading.check.snapshot import RunSnapshot, Snapshots
from probe.reading.dumps.dump import Dump, look_into_dump
from probe.reading.dumps.entry_name import BACKWARD, parse
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.names import Names
from probe.reading.dumps.run import Run
from probe.reading.dumps.samples import LIKE, NORM, Samples, samples_of, series
from probe.reading.dumps.work import HERE, Workers, run_units
from probe.reading.one_run.coverage import Coverage, Looked, looked_at
from probe.reading.one_run.health import in_place, invariants, losses, modes, numbers
from probe.reading.one_run.health.beside_rows import beside_rows
from probe.reading.one_run.health.rows import series_findings, skips_of
from probe.reading.one_run.health.step import (
    FAULT,
    NOTE,
    SUSPICIOUS,
    WEIGHTS,
    HealthFinding,
    Step,
    guarded,
)
from probe.reading.one_run.health.trained import Trained, facts as trained_facts
from probe.reading.one_run.health.training import TrainingRules, trainable_cells
from probe.reading.one_run.nan import Found, look_into as look_for_nan
from probe.reading.one_run.rank_checks import UNKNOWN, RankFinding, check_digests
from probe.reading.one_run.rank_digest import Digest, digest_of
from probe.reading.one_run.trend import TrendFinding, findings
from probe.series.file import RankSeries
from probe.series.skipped import BAD, GOOD, OTHER, SKIPPED, StepState, normal_skips, states_of
from probe.store.file_names import Rank

#: rules in the order in which their findings explain each other
_ORDER = ("guard", "NaN/Inf", "invariant", "ranks", "loss", "mode", "gradient ends", "held twice", "unused",
          "zero gradient", "not held", "no update", "not updated", "in place", "numbers", "decay")  # fmt: skip
NAN = "NaN/Inf"  # a rule's name
#: the kinds of findings about ranks that a healthy training may have
_MAY_BE = {"data": SUSPICIOUS, "outlier": SUSPICIOUS, UNKNOWN: NOTE}


#: a step and its rank
Place = tuple[Optional[int], Rank]


class StepFacts(NamedTuple):
    """The facts of one step of one rank."""

    step: int | None
    rank: Rank
    trained: Trained
    lost: losses.Lost
    kept: in_place.Kept
    numbers: list[HealthFinding]
    nan: HealthFinding | None  # the first call that makes NaN/Inf
    coverage: Coverage  # how much was looked at
    digest: Digest | None = None  # the part that is compared with other ranks
    samples: Samples | None = None  # the numbers of which the rules on series see curves


class RunLook(NamedTuple):
    """All that the rules see in one run."""

    findings: list[HealthFinding]  # the heaviest first
    series: list[HealthFinding]  # rules that hold in series of dumps, by step
    unread: list[Sentence]  # the reasons why dumps could not be read
    looked: Looked  # how much was looked at
    gaps: list[Sentence]  # the parts that cannot be known


def look_at_run(run: Run, workers: Workers = HERE, watched: Sequence[RankSeries] = ()) -> RunLook:
    """Return all findings in a run alone; ``watched`` are the rows of the monitor."""
    snapshots = Snapshots(run.path)
    units = [(folder, snapshots) for folder in run.folders]
    facts = list(run_units(look, units, workers, say("progress.run")))
    steps = [item for item in facts if isinstance(item, StepFacts)]
    looked = looked_at((item.step, item.rank, item.coverage) for item in steps)
    return RunLook(
        findings=findings_of(steps, snapshots, run.folders, watched),
        series=series_findings(trends_of(steps, snapshots, watched)),
        unread=[item for item in facts if isinstance(item, Sentence)],
        looked=looked,
        gaps=gaps_of(looked, snapshots) if run.folders else [say("gap.no_dump")],
    )


def gaps_of(looked: Looked, snapshots: Snapshots) -> list[Sentence]:
    """Return the parts of a run with dumps that cannot be known."""
    gaps = [*looked.gaps(), *looked.gaps_of_rules()]
    known = [snapshots.of_rank(rank) for rank in looked.ranks]
    if None in known:
        gaps.append(say("gap.snapshot"))
    of_models: dict[Sentence, None] = {}  # those of several ranks are one
    for snapshot in known:
        if snapshot is not None:
            of_models.update(dict.fromkeys(_gaps_of_models(snapshot)))
    return [*gaps, *of_models]


def _gaps_of_models(snapshot: RunSnapshot) -> Iterator[Sentence]:
    """Yield that the training has models that start() was not given, or was given one after another."""
    if snapshot.other_model is not None:
        yield say("gap.other_model", step=snapshot.other_model)
    elif snapshot.untold:
        kinds = listed(dict.fromkeys(snapshot.untold.values()))
        yield say("gap.outside", names=listed(snapshot.untold), kinds=kinds)


def findings_of(
    steps: Sequence[StepFacts],
    snapshots: Snapshots,
    folders: Sequence[DumpFolder],
    watched: Sequence[RankSeries] = (),
) -> list[HealthFinding]:
    """Return the findings in the steps of all ranks, and those that guards have told, the heaviest first.

    Args:
        steps: the facts of the recorded steps.
        snapshots: the circumstances of the run.
        folders: the recorded steps.
        watched: the rows of the monitor, which see other steps too.
    """
    found = skips_of(watched)
    skipped = skipped_of(steps, watched)
    for folder in folders:
        found += [guarded(said, folder.step, folder.rank) for said in folder.told()]
    held = {name for item in steps for name in item.trained.held}
    for rank in dict.fromkeys(item.rank for item in steps):
        own = [item for item in steps if item.rank == rank]
        found += over_steps(own, snapshots.of_rank(rank), held, skipped)
    digests = [item.digest for item in steps if item.digest is not None]
    found += over_ranks(digests)
    recorded = {item.step for item in steps if item.step is not None}
    return in_order(beside_rows(found, watched, recorded))


def skipped_of(steps: Sequence[StepFacts], watched: Sequence[RankSeries] = ()) -> frozenset[Place]:
    """Return the recorded steps and their ranks whose update a loss scaler has left out.

    The rows of the monitor tell it of the steps that they have, if they have updates.
    """
    found: set[Place] = set()
    for rank in {item.rank for item in steps}:
        rows = next((item for item in watched if item.rank == rank), None)
        known = states_of(rows) if rows is not None else []
        if all(item.state != GOOD for item in known):
            own = [item for item in steps if item.rank == rank and item.step is not None]
            known = [StepState(item.step or 0, _state(item)) for item in own]
        found.update((step, rank) for step in normal_skips(known))
    return frozenset(found)


def _state(item: StepFacts) -> str:
    """Return the state of a recorded step, as far as loss scalers are concerned."""
    if item.nan is None:
        return GOOD if item.trained.held else OTHER
    is_gradient = parse(item.nan.name).direction == BACKWARD
    return SKIPPED if is_gradient and not item.trained.held else BAD


def trends_of(
    steps: Sequence[StepFacts], snapshots: Snapshots, watched: Sequence[RankSeries] = ()
) -> list[TrendFinding]:
    """Return the rules that hold in the series that ``probe trend`` shows by default."""
    skipped = skipped_of(steps, watched)
    own = [
        item for item in _of_one_model(steps, snapshots) if (item.step, item.rank) not in skipped
    ]
    samples = [item.samples for item in own if item.samples is not None]
    recorded = sorted({item.step for item in samples if item.step is not None})
    trend, points = series(samples)
    return findings(trend, recorded, points=points)


def _of_one_model(steps: Sequence[StepFacts], snapshots: Snapshots) -> Iterator[StepFacts]:
    """Yield the steps before start() was given another model: series do not go over two models."""
    for item in steps:
        snapshot = snapshots.of_rank(item.rank)
        other = snapshot.other_model if snapshot is not None else None
        if other is None or (item.step is not None and item.step < other):
            yield item


def over_ranks(digests: Sequence[Digest]) -> list[HealthFinding]:
    """Return the findings of ``probe ranks``."""
    ranks = {item.rank for item in digests}
    if len(ranks) < 2:
        return []
    return [_of_ranks(item) for item in check_digests(digests).all]


def _of_ranks(item: RankFinding) -> HealthFinding:
    weight = _MAY_BE.get(item.kind, FAULT)
    rank = item.ranks[0] if item.ranks else None
    return HealthFinding(weight, "ranks", item.said, item.name, item.step, rank=rank)


def look(folder: DumpFolder, snapshots: Snapshots) -> StepFacts | Sentence:
    """Return the facts of one step of one rank, or the reason why it cannot be read."""
    snapshot = snapshots.of_rank(folder.rank)
    return look_into_dump(folder, lambda dump: _look_at_all(dump, snapshot), lambda reason: reason)


def _look_at_all(dump: Dump, snapshot: RunSnapshot | None) -> StepFacts:
    found = look_into(dump, snapshot)
    return found._replace(digest=digest_of(dump, snapshot))


def look_into(dump: Dump, snapshot: RunSnapshot | None, found: Found | None = None) -> StepFacts:
    """Return the facts of a step; ``found`` is the answer about NaN/Inf, if there is one already.

    Raise UsageError when the dump cannot be read.
    """
    step = Step(dump, snapshot)
    found = found or look_for_nan(dump)
    nan = None
    for origin in found.origins[:1]:
        place = dump.flow.position[origin.name]
        nan = step.found(FAULT, NAN, origin.said, place)
    return StepFacts(
        dump.step,
        dump.rank,
        trained_facts(step),
        losses.facts(step),
        in_place.facts(step),
        [*invariants.in_step(step), *numbers.in_step(step)],
        nan,
        found.coverage,
        samples=samples_of(dump, dump.step, Names(LIKE), NORM),
    )


def over_steps(
    steps: Sequence[StepFacts],
    snapshot: RunSnapshot | None,
    held: Set[str],
    skipped: Set[Place] = frozenset(),
) -> list[HealthFinding]:
    """Return the findings in the steps of one rank.

    Args:
        steps: the facts of its steps.
        snapshot: its circumstances.
        held: the parameters that any rank's optimizers hold.
        skipped: the steps and ranks whose update a loss scaler has left out.
    """
    found = _nan(steps, skipped)
    rank = steps[0].rank
    if snapshot is not None and snapshot.other_model is not None:
        other = snapshot.other_model
        steps = [item for item in steps if item.step is not None and item.step < other]
    found += losses.over_steps([item.lost for item in steps])
    facts = [item.trained for item in steps]
    if snapshot is None:
        found += TrainingRules(facts, trainable={}, models={}, idle=[], elsewhere=held)
    else:
        known = [item.step for item in steps if item.step is not None]
        trainable = trainable_cells(snapshot.parameters)
        models = modes.trained_models(snapshot, known)
        found += TrainingRules(facts, trainable, models, snapshot.idle, held)
        found += _modes(steps, snapshot)
    found += in_place.over_steps([item.kept for item in steps])
    for item in steps:
        found += [*item.lost.found, *item.kept.found, *item.numbers]
    return [dataclasses.replace(item, rank=rank) for item in found]


def _modes(steps: Sequence[StepFacts], snapshot: RunSnapshot) -> Iterator[HealthFinding]:
    held = {
        item.step: item.trained.held.keys()
        for item in steps
        if item.trained.held and item.step is not None
    }
    yield from modes.modes(snapshot, held)
    if held:
        yield from modes.frozen_norms(snapshot, list(held))


def _nan(steps: Sequence[StepFacts], skipped: Set[Place]) -> list[HealthFinding]:
    """Return the first NaN/Inf: what follows from it in later steps is not told again.

    That of a step whose update a loss scaler has left out is a note.
    """
    found: list[HealthFinding] = []
    for item in steps:
        if item.nan is None:
            continue
        if (item.step, item.rank) not in skipped:
            return [*found, item.nan]
        if not found:
            said = say("health.skipped", said=item.nan.said)
            found = [dataclasses.replace(item.nan, weight=NOTE, said=said)]
    return found


def in_order(found: Sequence[HealthFinding]) -> list[HealthFinding]:
    """Return findings, the heaviest first; those of one line of code once."""
    kept: dict[Any, HealthFinding] = {}
    for item in found:
        place = item.line or item.name or str(item.said)
        key = (item.rule, item.said.key, item.file, place)
        known = kept.get(key)
        if known is None:
            kept[key] = item
        elif known.name != item.name:
            kept[key] = dataclasses.replace(known, more=known.more + 1)
    return sorted(kept.values(), key=_rank_of)


def _rank_of(item: HealthFinding) -> tuple[int, int]:
    return WEIGHTS.index(item.weight), _ORDER.index(item.rule)

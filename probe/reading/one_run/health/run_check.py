# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe.check`` of one run: all rules over all its steps and ranks, and a description of it."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Sequence, Set
from typing import Any, NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, NOTHING, Sentence, say
from probe.reading.check.check import Check, check as check_two
from probe.reading.check.difference import listed, named
from probe.reading.check.snapshot import RunSnapshot, Snapshots, mapping, read_snapshots
from probe.reading.dumps import text
from probe.reading.dumps.dump import Dump, look_into_dump
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.names import Names
from probe.reading.dumps.run import Run, open as open_run
from probe.reading.dumps.samples import LIKE, NORM, Samples, samples_of, series
from probe.reading.dumps.work import HERE, Workers, run_units
from probe.reading.one_run.coverage import Coverage, Looked, looked_at
from probe.reading.one_run.health import in_place, losses, training
from probe.reading.one_run.health.rows import (
    alarms_of,
    gaps_of as gaps_of_rows,
    read_rows,
    series_findings,
)
from probe.reading.one_run.health.step import (
    FAULT,
    NOTE,
    SUSPICIOUS,
    WEIGHTS,
    HealthFinding,
    Step,
    guarded,
    not_known,
)
from probe.reading.one_run.health.training import modes
from probe.reading.one_run.nan import Found, look_into as look_for_nan
from probe.reading.one_run.rank_checks import UNKNOWN, RankFinding, check_digests
from probe.reading.one_run.rank_digest import Digest, digest_of
from probe.reading.one_run.trend import TrendFinding, findings
from probe.store.file_names import Rank

#: rules in the order in which their findings explain each other
_ORDER = ("guard", "NaN/Inf", "ranks", "loss", "mode", "gradient ends", "held twice", "unused", "zero gradient",
          "not held", "no update", "not updated", "in place", "numbers", "decay")  # fmt: skip
#: the kinds of findings about ranks that a healthy training may have
_MAY_BE = {"data": SUSPICIOUS, "outlier": SUSPICIOUS, UNKNOWN: NOTE}
#: how many findings are shown where nothing is said
ROWS = 12


class StepFacts(NamedTuple):
    """The facts of one step of one rank."""

    step: int | None
    rank: Rank
    trained: training.Trained
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


def look_at_run(run: Run, workers: Workers = HERE) -> RunLook:
    """Return all findings in a run alone."""
    snapshots = Snapshots(run.path)
    units = [(folder, snapshots) for folder in run.folders]
    facts = list(run_units(look, units, workers, say("progress.run")))
    steps = [item for item in facts if isinstance(item, StepFacts)]
    looked = looked_at((item.step, item.rank, item.coverage) for item in steps)
    gaps = gaps_of(looked, snapshots) if run.folders else [say("gap.no_dump")]
    errors = [item for item in facts if isinstance(item, Sentence)]
    series = series_findings(trends_of(steps, snapshots))
    return RunLook(findings_of(steps, snapshots, run.folders), series, errors, looked, gaps)


def gaps_of(looked: Looked, snapshots: Snapshots) -> list[Sentence]:
    """Return the parts of a run with dumps that cannot be known."""
    gaps = [*looked.gaps(), *looked.gaps_of_rules()]
    known = [snapshots.of_rank(rank) for rank in looked.ranks]
    if None in known:
        gaps.append(say("gap.snapshot"))
    return gaps + list(
        dict.fromkeys(gap for snapshot in known if snapshot for gap in _gaps_of_models(snapshot))
    )


def _gaps_of_models(snapshot: RunSnapshot) -> Iterator[Sentence]:
    """Yield that the training has models that start() was not given, or was given one after another."""
    if snapshot.other_model is not None:
        yield say("gap.other_model", step=snapshot.other_model)
    elif snapshot.untold:
        kinds = listed(dict.fromkeys(snapshot.untold.values()))
        yield say("gap.outside", names=listed(snapshot.untold), kinds=kinds)


def findings_of(
    steps: Sequence[StepFacts], snapshots: Snapshots, folders: Sequence[DumpFolder]
) -> list[HealthFinding]:
    """Return the findings in the steps of all ranks, and those that guards have told, the heaviest first."""
    found = [
        guarded(said, folder.step, folder.rank) for folder in folders for said in folder.told()
    ]
    held = {name for item in steps for name in item.trained.held}
    for rank in dict.fromkeys(item.rank for item in steps):
        own = [item for item in steps if item.rank == rank]
        found += over_steps(own, snapshots.of_rank(rank), held)
    found += over_ranks([item.digest for item in steps if item.digest is not None])
    return in_order(found)


def trends_of(steps: Sequence[StepFacts], snapshots: Snapshots) -> list[TrendFinding]:
    """Return the rules that hold in the series that ``probe trend`` shows by default."""
    samples = [item.samples for item in _of_one_model(steps, snapshots) if item.samples is not None]
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
    is_several = len({item.rank for item in digests}) > 1
    return [_of_ranks(item) for item in check_digests(digests).all] if is_several else []


def _of_ranks(item: RankFinding) -> HealthFinding:
    weight = _MAY_BE.get(item.kind, FAULT)
    return HealthFinding(
        weight, "ranks", item.said, item.name, item.step, rank=item.ranks[0] if item.ranks else None
    )


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
    origin = found.origins[0] if found.origins else None
    nan = (
        step.found(FAULT, "NaN/Inf", origin.said, dump.flow.position[origin.name])
        if origin
        else None
    )
    return StepFacts(
        dump.step,
        dump.rank,
        training.facts(step),
        losses.facts(step),
        in_place.facts(step),
        list(in_place.in_step(step)),
        nan,
        found.coverage,
        samples=samples_of(dump, dump.step, Names(LIKE), NORM),
    )


def over_steps(
    steps: Sequence[StepFacts], snapshot: RunSnapshot | None, held: Set[str]
) -> list[HealthFinding]:
    """Return the findings in the steps of one rank; ``held`` are the parameters that any rank's optimizers hold."""
    found = _nan(steps)
    rank = steps[0].rank
    if snapshot is not None and snapshot.other_model is not None:
        steps = [
            item for item in steps if item.step is not None and item.step < snapshot.other_model
        ]
    trainable = training.trainable_cells(snapshot.parameters) if snapshot else {}
    found += [*losses.over_steps([item.lost for item in steps])]
    numbers = [item.step for item in steps if item.step is not None]
    models = training.trained_models(snapshot, numbers) if snapshot else {}
    idle = snapshot.idle if snapshot else []
    found += training.TrainingRules([item.trained for item in steps], trainable, models, idle, held)
    if snapshot is not None:
        with_update = [item.step for item in steps if item.trained.held and item.step is not None]
        found += modes(
            snapshot, with_update, {name for item in steps for name in item.trained.held}
        )
    found += in_place.over_steps([item.kept for item in steps])
    for item in steps:
        found += [*item.lost.found, *item.kept.found, *item.numbers]
    return [dataclasses.replace(item, rank=rank) for item in found]


def _nan(steps: Sequence[StepFacts]) -> list[HealthFinding]:
    """Return the first NaN/Inf: what follows from it in later steps is not told again."""
    strange = [item for item in steps if item.nan is not None]
    # no update in the steps with NaN/Inf, and updates in others: a loss scaler has left them out
    is_skipped = any(item.trained.held for item in steps) and not any(
        item.trained.held for item in strange
    )
    return [
        dataclasses.replace(item.nan, weight=NOTE if is_skipped else FAULT)
        for item in strange[:1]
        if item.nan
    ]


def in_order(found: Sequence[HealthFinding]) -> list[HealthFinding]:
    """Return findings, the heaviest first; those of one line of code once."""
    kept: dict[Any, HealthFinding] = {}
    for item in found:
        key = item.rule, item.said.key, item.file, item.line or item.name or str(item.said)
        known = kept.get(key)
        is_again = known is not None and known.name == item.name
        kept[key] = (
            item if known is None else dataclasses.replace(known, more=known.more + (not is_again))
        )
    return sorted(
        kept.values(), key=lambda item: (WEIGHTS.index(item.weight), _ORDER.index(item.rule))
    )


class RunCheck:
    """The findings in one run; one without a dump is only described.

    Attributes:
        findings: the findings, the heaviest first.
        errors: the reasons why dumps could not be read.
        unknown: the parts of the run that cannot be known, as they were not recorded.

    Example::

        check = probe.check("dump_path")
        assert check.ok, check
    """

    def __init__(self, run: Run, snapshots: list[RunSnapshot], workers: Workers = HERE) -> None:
        self._run = run
        self._snapshots = snapshots
        found = look_at_run(run, workers)
        rows = read_rows(run.path)
        alarms = alarms_of(rows.ranks)
        self.findings = sorted(
            [*found.findings, *found.series, *alarms], key=lambda item: WEIGHTS.index(item.weight)
        )
        self._unread = [*found.unread, *rows.unread]
        self.errors = [str(reason) for reason in self._unread]
        self.unknown = [*found.gaps, *(gaps_of_rows(rows.ranks) if rows.ranks else [])]
        self._looked = found.looked

    @property
    def ok(self) -> bool:
        """Whether there is no fault; a suspicious line is none."""
        return not any(item.weight == FAULT for item in self.findings)

    @property
    def is_known(self) -> bool:
        """Whether everything could be read, and nothing about the ranks cannot be known."""
        is_ranks_known = not any(
            item.rule == "ranks" and item.weight == NOTE for item in self.findings
        )
        return is_ranks_known and not self.errors and not self.unknown

    def text(self, language: str, rows: int = ROWS) -> str:
        """Return the findings and the description, in a language: "en" or "zh"; ``rows`` 0 shows all findings."""
        shown = self.findings[:rows] if rows > 0 else self.findings
        lines = [text.safe(item.whole.text(language)) for item in shown]
        if len(shown) < len(self.findings):
            lines.append(say("health.rest", count=len(self.findings) - len(shown)).text(language))
        if not lines and self._looked.has_numbers:
            lines.append(text.safe(say("health.none", looked=self._looked.said).text(language)))
        lines += [text.safe(gap.text(language)) for gap in self.unknown]
        lines += [
            text.safe(say("check.note", note=reason).text(language)) for reason in self._unread
        ]
        return "\n".join(
            [*lines, *([describe(self._snapshots, language)] if self._snapshots else [])]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as values of JSON."""
        return {
            "ok": self.ok,
            "findings": [item.to_dict() for item in self.findings],
            "errors": self.errors,
            "unknown": [not_known(gap).to_dict() for gap in self.unknown],
            "runs": [
                {
                    "run": item.run,
                    "notes": item.notes,
                    "optimizers": item.optimizers,
                    "inputs": item.inputs,
                    "damage": str(item.damage),
                }
                for item in self._snapshots
            ],
        }

    def __str__(self) -> str:
        return self.text(ENGLISH)

    def __repr__(self) -> str:
        return f"<RunCheck: {len(self.findings)} findings>"


def check_run(path: str | os.PathLike[str], workers: Workers = HERE) -> RunCheck:
    """Look at one run alone; raise UsageError when there is neither a dump nor a snapshot."""
    path = os.fspath(path)
    try:
        run = open_run(path)
    except UsageError:
        return RunCheck(Run(path, []), read_snapshots(path), workers)
    try:
        snapshots = read_snapshots(path)
    except UsageError:
        if not run.folders:
            raise
        snapshots = []
    return RunCheck(run, snapshots, workers)


def check(a: str | os.PathLike[str], b: str | os.PathLike[str] | None = None) -> Check | RunCheck:
    """Look at one run, or compare the circumstances of two runs, or two checkpoints.

    Args:
        a: A, the golden one: a dump_path, a step or rank folder in it, a run.json, or a checkpoint (.ckpt,
            .safetensors, .npz, .pt, .bin). Without ``b`` the run to look at.
        b: B, yours.

    Raises:
        UsageError: when there is no snapshot, or a file cannot be read.

    Example::

        assert probe.check("golden", "mine").ok
        print(probe.check("mine"))
    """
    return check_run(a) if b is None else check_two(a, b)


def describe(snapshots: list[RunSnapshot], language: str) -> str:
    """Return the description of a run: that of its first rank."""
    first = snapshots[0]
    more = len(snapshots) - 1
    ranks = say("check.more_ranks", count=more) if more else NOTHING
    lines = [
        say("check.run", path=first.path, ranks=ranks),
        *_surroundings(first.run),
        *_model(first),
    ]
    lines += [say("check.note", note=first.damage)] if first.damage else []
    return "\n".join(text.shorten(text.safe(line.text(language)), 400) for line in lines)


def _surroundings(run: dict[str, Any]) -> Iterator[Sentence]:
    """Yield the command, the place, the code, the versions and the device of a run."""
    keys = ("folder", "host", "process", "python", "device", "world_size", "seed", "deterministic")
    facts = {key: str(run.get(key)) for key in keys}
    words = run.get("command")
    code = mapping(run.get("code"))
    commit = (
        say("check.commit", commit=str(code["commit"]))
        if code.get("commit")
        else say("check.no_commit")
    )
    versions = [named(name, str(version)) for name, version in mapping(run.get("versions")).items()]
    is_graph = mapping(run.get("context")).get("mode") == 0
    yield say("check.whole_command", words=" ".join(words or ()))
    yield say("check.folder", **facts)
    yield say("check.files_of_code", count=len(mapping(code.get("files"))), commit=commit)
    yield say("check.versions", **facts, versions=versions, count=len(mapping(run.get("packages"))))
    yield say("check.device", **facts, mode="GRAPH_MODE" if is_graph else say("check.pynative"))
    yield say("check.seed", **facts)


def _model(snapshot: RunSnapshot) -> Iterator[Sentence]:
    parameters = snapshot.parameters
    sizes = [
        math.prod(item["shape"]) for item in parameters.values() if item.get("shape") is not None
    ]
    yield say(
        "check.the_model",
        cells=len(snapshot.cells),
        count=len(parameters),
        elements=sum(sizes),
        trainable=sum(item.get("trainable") is True for item in parameters.values()),
    )
    yield say("check.steps", first=str(snapshot.run.get("first_step")), count=len(snapshot.inputs))
    for name, numbers in snapshot.optimizers.items():
        shown = (named(*item) for item in numbers.items() if isinstance(item[1], (int, float)))
        yield say(
            "check.optimizer_numbers", kind=name.rpartition(".")[2], numbers=listed(shown, 12)
        )
    if snapshot.notes:
        shown = (named(key, str(value)) for key, value in snapshot.notes.items())
        yield say("check.notes", notes=listed(shown, 12))

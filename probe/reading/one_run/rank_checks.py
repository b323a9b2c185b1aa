# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe ranks``: values that must be equal on all ranks of one run. It needs no golden run."""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Finding, Sentence, say
from probe.naming import ranges
from probe.reading.check.snapshot import Snapshots
from probe.reading.dumps.run import Run
from probe.reading.dumps.work import HERE, Workers, run_units
from probe.reading.one_run.rank_digest import WORLD, Digest, digest
from probe.series.replicas import (
    BEFORE,
    GRADIENT,
    PLACED,
    REDUCED,
    Held,
    Judged,
    Replicas,
    groups_of,
    has_majority,
    judge,
)
from probe.store.file_names import Rank

_EQUAL_AFTER = ("allreduce", "allgather", "broadcast")
_BETWEEN_TWO = ("send", "recv", "isend", "irecv", "batchisendirecv")
_OUTLIER_Z = 8.0
_OUTLIER_FACTOR = 2.0
_OUTLIER_RANKS = 8
_MOST = 20
_LEAST_WHOLE = (
    2  # a rank with so many parameters, all of them other than elsewhere, is apart as a whole
)
UNKNOWN = "unknown"
#: the sentence of each reason; that most ranks share a value stands in the sentence itself
_WHY = {
    PLACED: "ranks.why_placed",
    REDUCED: "ranks.why_reduced",
    GRADIENT: "ranks.why_gradient",
    BEFORE: "ranks.why_before",
}


@dataclass(frozen=True)
class RankFinding(Finding):
    """One thing that ranks disagree on, or that cannot be known."""

    #: "parameter", "statistic", "mode", "collective", "sequence", "data", "outlier"; "unknown" cannot be known
    kind: str
    step: int | None
    name: str  # the call or parameter
    ranks: list[
        Rank
    ]  # the ranks that are apart from the others; all where it cannot be told which are right
    said: Sentence  # one sentence about it


@dataclass
class RankChecks:
    """The answer about the ranks of a run."""

    findings: list[RankFinding]  # the things they disagree on, by step
    unknown: list[RankFinding]  # the parts that cannot be known, by step
    looked: Sentence  # the range of the look

    @property
    def all(self) -> list[RankFinding]:
        """The findings, and then the parts that cannot be known."""
        return [*self.findings, *self.unknown]

    @property
    def status(self) -> int:
        """The exit status: 0 they agree, 1 they disagree, 2 it cannot be known."""
        return 1 if self.findings else 2 * bool(self.unknown)


def check_ranks(run: Run, jobs: int = 1, scheduler: str = "") -> list[RankFinding]:
    """Return the values on which the ranks of a run disagree, though they should not, by step.

    Behind them stand the parts that cannot be known, of kind "unknown".

    Args:
        run: the run.
        jobs: how many processes work.
        scheduler: the address of a Dask scheduler, whose workers do it instead.

    Example::

        for finding in probe.check_ranks(probe.open("dump_path")):
            print(finding.step, finding.ranks, finding.sentence)

    Raises:
        UsageError: when the run has one rank only, or the cluster cannot do it.
    """
    if len(run.ranks) < 2:
        raise UsageError(say("error.one_rank", path=run.path))
    return check_digests(digest_all(run, Workers(jobs, scheduler))).all


def digest_all(run: Run, workers: Workers = HERE) -> list[Digest]:
    """Return the parts of all dumps that are compared with other ranks."""
    snapshots = Snapshots(run.path)
    units = [(folder, snapshots) for folder in run.folders]
    return list(run_units(digest, units, workers, say("progress.ranks")))


def check_digests(digests: Sequence[Digest]) -> RankChecks:
    """Return the values on which ranks disagree, from the digests of all their dumps, and the range of the look."""
    found: list[RankFinding] = []
    unknown: list[RankFinding] = []
    looked = _Looked()
    earlier = dict[str, dict[Rank, Hashable]]()
    for step in dict.fromkeys(item.step for item in digests):
        of_step = [item for item in digests if item.step == step and not item.error]
        if len(of_step) == 1:
            ranks = [of_step[0].rank]
            said = say("ranks.alone", ranks=ranks_said(ranks))
            unknown.append(RankFinding(UNKNOWN, step, "", ranks, said))
        elif of_step:
            checks = _StepChecks(of_step, earlier)
            found += checks.findings()
            unknown += checks.unknown()
            looked.add(checks)
    once = {(item.said.key, item.name, tuple(item.ranks)): item for item in reversed(unknown)}
    return RankChecks(found, list(reversed(list(once.values()))), looked.said())


class _Looked:
    """Counts the range of the look."""

    def __init__(self) -> None:
        self._steps: list[int | None] = []
        self._ranks: set[Rank] = set()
        self._same: set[str] = set()
        self._split: set[str] = set()
        self._alone: set[str] = set()
        self._statistics: set[str] = set()
        self._collectives = 0

    def add(self, checks: _StepChecks) -> None:
        """Add a step."""
        self._steps.append(checks.digests[0].step)
        self._ranks.update(item.rank for item in checks.digests)
        for name, judged in checks.judged.items():
            (self._split if judged.is_split else self._same).add(name)
        self._alone.update(checks.alone)
        self._statistics.update(name for item in checks.digests for name in item.statistics)
        self._collectives += max(len(item.collectives) for item in checks.digests)

    def said(self) -> Sentence:
        """Return all of it as one sentence."""
        steps = [step for step in self._steps if step is not None]
        parts = [say("ranks.of_steps", steps=", ".join(ranges(steps)))] if steps else []
        parts.append(
            ranks_said(sorted(self._ranks, key=lambda rank: (isinstance(rank, str), rank)))
        )
        parts.append(say("ranks.of_parameters", count=len(self._same)))
        parts += [say("ranks.of_parts", count=len(self._split))] if self._split else []
        parts += [say("ranks.of_alone", count=len(self._alone))] if self._alone else []
        parts += (
            [say("ranks.of_statistics", count=len(self._statistics))] if self._statistics else []
        )
        parts.append(say("ranks.of_collectives", count=self._collectives))
        return say("list", parts=parts)


def ranks_said(ranks: Sequence[Any]) -> Sentence:
    """Return ranks as ranges.

    >>> str(ranks_said([0, 1, 2, 5])), str(ranks_said(["proc12"]))
    ('ranks 0-2, 5', 'rank proc12')
    """
    numbers = [rank for rank in ranks if isinstance(rank, int)]
    texts = [str(rank) for rank in ranks if not isinstance(rank, int)]
    shown = ", ".join([*texts, *ranges(numbers)])
    return say("ranks.several" if len(ranks) > 1 else "ranks.one", ranks=shown)


def _apart(groups: list[list[Any]]) -> Sentence:
    """Return which ranks agree and which do not; where no group is the largest, which have other values."""
    if not has_majority(groups):
        return say("ranks.tie", groups=[ranks_said(group) for group in groups[:4]])
    most, *others = groups
    said = [say("ranks.agree" if len(most) > 1 else "ranks.one_value", ranks=ranks_said(most))]
    said += [
        say("ranks.do_not" if len(it) > 1 else "ranks.does_not", ranks=ranks_said(it))
        for it in others[:3]
    ]
    return say("list", parts=said)


def _ranks_apart(groups: list[list[Rank]]) -> list[Rank]:
    """Return the ranks that are not in the largest group; all where no group is the largest."""
    return [rank for group in groups[has_majority(groups) :] for rank in group]


def _finding(
    kind: str, key: str, digests: list[Digest], name: str, groups: list[list[Any]], **facts: Any
) -> RankFinding:
    """Return a finding about ranks that fall into groups; those of the largest are right."""
    facts = {"more": NOTHING, **facts}
    said = say(key, name=name, groups=_apart(groups), **facts)
    return RankFinding(kind, digests[0].step, name, _ranks_apart(groups), said)


def _more(names: Sequence[str]) -> Sentence:
    return say("ranks.more", count=len(names) - 1) if len(names) > 1 else NOTHING


def _why(reason: str) -> Sentence:
    return say(_WHY[reason]) if reason in _WHY else NOTHING


class _StepChecks:
    """All checks of one step; ``earlier`` has values of replicas in steps before, and gets those of this one."""

    def __init__(self, digests: list[Digest], earlier: dict[str, dict[Rank, Hashable]]) -> None:
        self.digests = digests
        self._earlier = earlier
        self._by_rank = {item.rank: item for item in digests}
        #: the ranks that run the same model, or the same part of one
        self._models = _grouped((_model_of(item), item.rank) for item in digests)
        self.judged: dict[str, Judged] = {}  # parameter that several ranks have -> the decision
        self._judge()

    def findings(self) -> Iterator[RankFinding]:
        """Yield the values on which the ranks disagree, those that explain others first."""
        parameters = list(self._parameters())
        yield from parameters or self._after()
        yield from _statistics_apart(self.digests)
        modes = list(self._modes())
        yield from modes
        yield from self._data()
        yield from _collectives(self.digests)
        yield from self._sequences(has_modes=bool(modes))
        yield from _outliers(self.digests)

    def _held(self) -> dict[str, dict[Rank, Held]]:
        found: dict[str, dict[Rank, Held]] = {}
        for item in self.digests:
            for name, held in item.parameters.items():
                found.setdefault(name, {})[item.rank] = held
        for by_rank in found.values():
            kinds = groups_of({rank: _kind_of(held.value) for rank, held in by_rank.items()})
            for group in kinds[1:]:  # a checksum and statistics of one tensor cannot be compared
                by_rank.update({rank: by_rank[rank]._replace(value=None) for rank in group})
        return found

    def _judge(self) -> None:
        self._all = self._held()
        for name, held in self._all.items():
            if len(held) > 1:
                self.judged[name] = judge(held, {}, self._are_parts(list(held)))
        pairs = self._replica_ranks()
        for name, judged in self.judged.items():
            held = self._all[name]
            before = self._earlier.get(name, {})
            if (
                judged.unknown
                and before
                and set(held) <= pairs
                and not any(it.splits for it in self.digests)
            ):
                self.judged[name] = judge(held, {rank: before.get(rank) for rank in held}, False)
        for name, held in self._all.items():
            telling = {rank: item.value for rank, item in held.items() if item.is_telling}
            self._earlier[name] = telling

    @property
    def alone(self) -> list[str]:
        """The parameters that one rank alone has."""
        return [name for name, held in self._all.items() if len(held) == 1]

    def _replica_ranks(self) -> set[Rank]:
        """Return the ranks that hold replicas of any parameter, by evidence about it."""
        found: set[Rank] = set()
        for judged in self.judged.values():
            for item in judged.replicas:
                found.update(item.ranks if item.why in (PLACED, REDUCED, GRADIENT) else [])
        return found

    def _are_parts(self, ranks: list[Rank]) -> bool:
        """Return whether ranks split a model: as stages, or as parts of layers that see the same batch."""
        batches = {rank: self._by_rank[rank].batch for rank in ranks}
        received = {batch.is_received for batch in batches.values() if batch is not None}
        if len(received) == 2:
            return True
        contents = _grouped(
            (batch.content, rank) for rank, batch in batches.items() if batch is not None
        )
        is_shared = (
            bool(contents)
            and all(len(group) > 1 for group in contents.values())
            and None not in batches.values()
        )
        return is_shared and all(self._by_rank[rank].splits for rank in ranks)

    def _parameters(self) -> Iterator[RankFinding]:
        wrong = [(name, item) for name, judged in self.judged.items() for item in judged.apart]
        whole = self._whole(wrong)
        if whole:
            yield whole[0]
            wrong = [
                (name, item)
                for name, item in wrong
                if not set(_ranks_apart(item.groups)) <= set(whole[0].ranks)
            ]
        if wrong:
            name, item = wrong[0]
            more = _more(list(dict.fromkeys(name for name, _ in wrong)))
            key = (
                "ranks.parameter" if set(item.ranks) == set(self._by_rank) else "ranks.parameter_of"
            )
            facts = {
                "more": more,
                "why": _why(item.why),
                "ranks": ranks_said(sorted(item.ranks, key=str)),
            }
            yield _finding("parameter", key, self.digests, name, item.groups, **facts)

    def _whole(self, wrong: list[tuple[str, Replicas]]) -> list[RankFinding]:
        """Return the finding about ranks all of whose parameters are others than those of their replicas."""
        apart: dict[Rank, list[tuple[str, Replicas]]] = {}
        for name, item in wrong:
            for rank in _ranks_apart(item.groups):
                apart.setdefault(rank, []).append((name, item))
        counts: dict[Rank, int] = {}
        for name, judged in self.judged.items():
            held = self._all[name]
            for item in judged.replicas:
                is_equal = len(item.groups) == 1
                for rank in item.ranks:
                    counts[rank] = counts.get(rank, 0) + (not is_equal or held[rank].is_telling)
        whole = [
            rank for rank, found in apart.items() if len(found) >= max(counts[rank], _LEAST_WHOLE)
        ]
        if not whole:
            return []
        name, item = apart[whole[0]][0]
        of_all = [name for name, _ in apart[whole[0]]]
        facts = {
            "count": len(of_all),
            "ranks": ranks_said(sorted(whole, key=str)),
            "why": _why(item.why),
        }
        facts["groups"] = _apart(item.groups)
        is_told = has_majority(item.groups)
        said = say("ranks.whole", **facts) if is_told else say("ranks.whole_tie", **facts)
        return [RankFinding("parameter", self.digests[0].step, name, sorted(whole, key=str), said)]

    def _after(self) -> Iterator[RankFinding]:
        """Yield parameters that were the same, got the same gradients, and differ after the update."""
        wrong: list[tuple[str, list[list[Rank]]]] = []
        after: dict[str, dict[Rank, Hashable]] = {}
        for item in self.digests:
            for name, value in item.after.items():
                after.setdefault(name, {})[item.rank] = value
        for name, values in after.items():
            held = {rank: item for rank, item in self._all.get(name, {}).items() if rank in values}
            if len({item.value for item in held.values()}) > 1:
                continue
            gradients = {
                rank: Held(values[rank], gradient=item.gradient) for rank, item in held.items()
            }
            wrong += [(name, item.groups) for item in judge(gradients, {}, True).apart]
        if wrong:
            name, groups = wrong[0]
            is_known = any(item.value is not None for item in self._all[name].values())
            key = "ranks.after" if is_known else "ranks.after_only"
            yield _finding(
                "parameter",
                key,
                self.digests,
                name,
                groups,
                more=_more([name for name, _ in wrong]),
            )

    def unknown(self) -> Iterator[RankFinding]:
        """Yield the parts that cannot be known, with the thing to record."""
        step = self.digests[0].step
        ranks = sorted(self._by_rank, key=lambda rank: (isinstance(rank, str), rank))
        values = [item.value for held in self._all.values() for item in held.values()]
        if not any(value is not None for value in values) and not any(
            item.after for item in self.digests
        ):
            yield RankFinding(UNKNOWN, step, "", ranks, say("ranks.no_parameters"))
            return
        yield from self._not_recorded(step)
        names = [name for name, judged in self.judged.items() if judged.unknown]
        if names:
            groups = self.judged[names[0]].unknown
            known = [item.gradient for item in self._all[names[0]].values()]
            facts = {
                "name": names[0],
                "more": _more(names),
                "groups": [ranks_said(group) for group in groups[:4]],
            }
            have_gradients = None not in known
            said = (
                say("ranks.unknown_gradients", **facts)
                if have_gradients
                else say("ranks.unknown", **facts)
            )
            yield RankFinding(
                UNKNOWN, step, names[0], sorted((r for g in groups for r in g), key=str), said
            )

    def _not_recorded(self, step: int | None) -> Iterator[RankFinding]:
        """Yield ranks that lack values which others have, though their optimizers update the parameter."""
        lacks: dict[Rank, str] = {}
        for name, held in self._all.items():
            if any(item.value is not None for item in held.values()):
                lacks.update({rank: name for rank, item in held.items() if item.value is None})
        if lacks:
            ranks = sorted(lacks, key=lambda rank: (isinstance(rank, str), rank))
            said = say("ranks.not_recorded", ranks=ranks_said(ranks), name=lacks[ranks[0]])
            yield RankFinding(UNKNOWN, step, lacks[ranks[0]], ranks, said)

    def _modes(self) -> Iterator[RankFinding]:
        for ranks in self._models.values():
            modes = {rank: self._by_rank[rank].evaluating for rank in ranks}
            known = {rank: cells for rank, cells in modes.items() if cells is not None}
            groups = groups_of(known)
            if len(groups) > 1:
                ordered = sorted(groups, key=lambda group: len(known[group[0]] or ()))
                cells = sorted(
                    set(known[ordered[-1][0]] or ()) - set(known[ordered[0][0]] or ()), key=len
                )
                cell = (cells[0] if cells else "") or say("ranks.model")
                facts = {
                    "cell": cell,
                    "ranks": ranks_said(ordered[-1]),
                    "others": ranks_said(ordered[0]),
                }
                name = cells[0] if cells else ""
                yield RankFinding(
                    "mode",
                    self.digests[0].step,
                    name,
                    _ranks_apart(groups),
                    say("ranks.mode", **facts),
                )

    def _data(self) -> Iterator[RankFinding]:
        batches = {item.rank: item.batch.content for item in self.digests if item.batch is not None}
        for group in groups_of(batches):
            if len(group) > 1 and not all(_is_split(self._by_rank[rank]) for rank in group):
                name = next(item.batch.name for item in self.digests if item.batch is not None)
                said = say("ranks.data", ranks=ranks_said(group))
                yield RankFinding("data", self.digests[0].step, name, group[1:], said)

    def _sequences(self, has_modes: bool) -> Iterator[RankFinding]:
        """Yield where ranks of one group call other collectives, or ranks of one model other calls."""
        members = dict.fromkeys(call.members for item in self.digests for call in item.collectives)
        for group in members:
            calls = {
                rank: _calls_in(item, group)
                for rank, item in self._by_rank.items()
                if _is_in(item, group)
            }
            groups = groups_of(
                {rank: tuple(key for key, _ in found) for rank, found in calls.items()}
            )
            if len(groups) > 1:
                first, other = (calls[ranks[0]] for ranks in groups[:2])
                pairs = list(zip(first, other))
                place = next((i for i, (x, y) in enumerate(pairs) if x[0] != y[0]), len(pairs))
                longer = first if len(first) > place else other
                yield _finding("sequence", "ranks.sequence", self.digests, longer[place][1], groups)
                return
        for ranks in () if has_modes else self._models.values():  # another mode makes other calls
            groups = groups_of({rank: self._by_rank[rank].calls for rank in ranks})
            if len(groups) > 1 and not len(groups) == len(ranks) > 2:
                names, others = (self._by_rank[group[0]].call_names() for group in groups[:2])
                first_name = min({*names} ^ {*others} or names[:1])
                yield _finding("sequence", "ranks.calls", self.digests, first_name, groups)


def _kind_of(value: Hashable) -> Hashable:
    return (type(value), len(value)) if isinstance(value, (str, tuple)) else type(value)


def _grouped(pairs: Any) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found


def _model_of(item: Digest) -> Hashable:
    """Return a key of the model of a rank: ranks of other stages have other parameters, or get their batch passed."""
    is_received = item.batch is not None and item.batch.is_received
    return frozenset(
        name for name, held in item.parameters.items() if held.value is not None
    ), is_received


def _is_split(item: Digest) -> bool:
    """Return whether a rank works on a part of a model, so that others may be given its batch too."""
    return item.splits or any(held.place for held in item.parameters.values())


def _is_in(item: Digest, group: str) -> bool:
    """Return whether a rank is in a group of collectives."""
    if group == WORLD:
        return True
    ranks = group.split(",")
    is_list = all(rank.isdigit() for rank in ranks)
    return (
        str(item.rank) in ranks
        if is_list
        else any(call.members == group for call in item.collectives)
    )


def _calls_in(item: Digest, group: str) -> list[tuple[str, str]]:
    """Return (API, entry) of the collectives of a group, without those between two ranks."""
    own = [(call.key, call.name) for call in item.collectives if call.members == group]
    return [
        pair
        for pair in own
        if pair[0].rpartition(".")[2].lower().replace("_", "") not in _BETWEEN_TWO
    ]


def _statistics_apart(digests: list[Digest]) -> Iterator[RankFinding]:
    """Yield moving statistics that some ranks share, and others do not: those of own batches are all of each rank.

    If no group is the largest, the other statistics of the layer tell: one forward moves them all. Before the first
    forward those of all layers tell.
    """
    names = [
        name for name in digests[0].statistics if all(name in item.statistics for item in digests)
    ]
    groups = {
        name: groups_of({item.rank: item.statistics[name] for item in digests}) for name in names
    }
    layers = _grouped((name.rpartition(".")[0], name) for name in names)
    wrong: list[str] = []
    for name in names:
        kinds = {_kind_of(item.statistics[name]) for item in digests}
        is_initial = kinds == {str}  # a checksum: before the first forward
        others = [
            other
            for other in (names if is_initial else layers[name.rpartition(".")[0]])
            if other != name
        ]
        is_odd = any(len(groups[other]) == 1 for other in others)
        if len(kinds) == 1 and len(groups[name]) > 1 and (has_majority(groups[name]) or is_odd):
            wrong.append(name)
    if wrong:
        name = wrong[0]
        yield _finding(
            "statistic", "ranks.statistic", digests, name, groups[name], more=_more(wrong)
        )


def _collectives(digests: list[Digest]) -> list[RankFinding]:
    found: list[RankFinding] = []
    calls: dict[tuple[str, str, int], dict[Any, Any]] = {}
    names: dict[tuple[str, str, int], str] = {}
    for item in digests:
        counts: dict[tuple[str, str], int] = {}
        for group, key, name, contents in item.collectives:
            number = counts[group, key] = counts.get((group, key), -1) + 1
            is_known = (
                group == WORLD or group.replace(",", "").isdigit()
            )  # one name may stand for several groups
            calls.setdefault((group, key, number), {})[item.rank] = contents if is_known else None
            names.setdefault((group, key, number), name)
    for place, values in calls.items():
        name = place[1].rpartition(".")[2].lower().replace("_", "")
        known = {rank: value for rank, value in values.items() if value and None not in value}
        groups = groups_of(known) if name.startswith(_EQUAL_AFTER) else []
        if len(groups) > 1:
            found.append(_finding("collective", "ranks.collective", digests, names[place], groups))
    return found[:_MOST]


def _outliers(digests: list[Digest]) -> list[RankFinding]:
    if len(digests) < _OUTLIER_RANKS:
        return []
    found: list[RankFinding] = []
    names = digests[0].call_names()
    columns = {item.rank: _norms(item, names, item.calls == digests[0].calls) for item in digests}
    for place, name in enumerate(names):
        logs = {
            rank: math.log(norms[place])
            for rank, norms in columns.items()
            if 0 < norms[place] < math.inf
        }
        if not logs:
            continue
        middle = statistics.median(logs.values())
        spread = statistics.median(abs(value - middle) for value in logs.values()) * 1.4826
        far = [
            rank
            for rank, value in logs.items()
            if abs(value - middle) > max(_OUTLIER_Z * spread, math.log(_OUTLIER_FACTOR))
        ]
        if far:
            said = say("ranks.outlier", name=name, ranks=ranks_said(far))
            found.append(RankFinding("outlier", digests[0].step, name, far, said))
    return found[:_MOST]


def _norms(item: Digest, names: list[str], is_same: bool) -> Sequence[float]:
    norms = array("f")
    norms.frombytes(item.norms)
    if is_same:
        return norms
    known = dict(zip(item.call_names(), norms))
    return [known.get(name, math.nan) for name in names]

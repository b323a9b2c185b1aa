# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe ranks``: values that must be equal on all ranks of one run. It needs no golden run."""

from __future__ import annotations

import itertools
import math
import statistics
import zlib
from array import array
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Finding, Sentence, say
from probe.reading.compare.origins.origin import is_collective
from probe.reading.dumps.dump import Dump, look_into_dump
from probe.reading.dumps.entry_name import FORWARD, GRADIENT, parse
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.run import Run
from probe.reading.dumps.values import grouped, is_tensor, leaves, real, tensors_in
from probe.reading.dumps.work import HERE, Workers, run_units
from probe.store.file_names import Rank

_EQUAL_AFTER = ("allreduce", "allgather", "broadcast")
_OUTLIER_Z, _OUTLIER_FACTOR, _OUTLIER_RANKS = 8.0, 2.0, 8
_MOST = 20
ONE_RANK = "has one rank; there is nothing to compare it with"


@dataclass
class Digest:
    """The part of one step of one rank that is compared with other ranks."""

    step: int | None
    rank: Rank
    error: str = ""  # the reason why the dump could not be read, or ""
    lost: str = ""  # what could not be read of it
    parameters: dict[str, Hashable] = field(default_factory=dict)  # parameter -> a key of its content
    #: (members, API, name, keys of the outputs) of each
    collectives: list[tuple[str, str, str, Hashable]] = field(default_factory=list)
    batch: Hashable = None  # a key of the content of the first input
    batch_name: str = ""  # the call that is given it
    calls: bytes = b""  # the names of all calls, packed: equal bytes mean the same sequence
    norms: bytes = b""  # for each of these calls the norm of its first output as a float32, NaN where it has none

    def call_names(self) -> list[str]:
        """Return the names of all calls, in order."""
        return zlib.decompress(self.calls).decode("utf-8", "surrogatepass").split("\n") if self.calls else []


@dataclass(frozen=True)
class RankFinding(Finding):
    """One thing that ranks disagree on."""

    kind: str  # "parameter", "collective", "sequence", "data" or "outlier"
    step: int | None
    name: str  # the call or parameter
    ranks: list[Rank]  # the ranks that are apart from the others
    said: Sentence  # one sentence about it


def check_ranks(run: Run, jobs: int = 1, scheduler: str = "") -> list[RankFinding]:
    """Return the values on which the ranks of a run disagree, though they should not, by step.

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
        raise UsageError(f"{run.path} {ONE_RANK}")
    return check_digests(digest_all(run, Workers(jobs, scheduler)))


def digest_all(run: Run, workers: Workers = HERE) -> list[Digest]:
    """Return the parts of all dumps that are compared with other ranks."""
    return list(run_units(digest, [(folder,) for folder in run.folders], workers, "looking at the ranks"))


def check_digests(digests: Sequence[Digest]) -> list[RankFinding]:
    """Return the values on which ranks disagree, from the digests of all their dumps, by step."""
    found: list[RankFinding] = []
    for step in dict.fromkeys(item.step for item in digests):
        of_step = [item for item in digests if item.step == step and not item.error]
        if len(of_step) > 1:
            for check in (_data, _parameters, _collectives, _sequences, _outliers):
                found += check(of_step)
    return found


def digest(folder: DumpFolder) -> Digest:
    """Return the part of a dump that is compared with other ranks."""
    return look_into_dump(folder, digest_of, lambda reason: Digest(folder.step, folder.rank, reason))


def digest_of(dump: Dump) -> Digest:
    """Return the part of a dump that is compared with other ranks; raise UsageError when it cannot be read."""
    made = Digest(dump.step, dump.rank, lost=dump.document.lost)
    containers = {parent for parent in dump.construct.values() if parent}
    names: list[str] = []
    norms = array("f")
    for name, entry in dump.data.items():
        if not isinstance(entry, dict):
            continue
        parts = parse(name)
        for key, record in leaves(entry.get("parameters")):
            if is_tensor(record) and "moving_" not in key:  # moving statistics are each rank's own
                made.parameters.setdefault(f"{parts.path}.{key}", content_key(record))
        outputs = tensors_in(entry, "output")
        if parts.direction == FORWARD and is_collective(parts) and name not in containers:
            group = entry.get("group_ranks")
            members = ",".join(map(str, group)) if isinstance(group, list) else "world"
            contents = None if "pending" in entry else tuple(content_key(record) for record in outputs)
            made.collectives.append((members, parts.key, name, contents))
        elif parts.direction == FORWARD and made.batch is None:
            given = tensors_in(entry, "input_args")
            made.batch, made.batch_name = (content_key(given[0]), name) if given else (None, "")
        if parts.kind != GRADIENT:
            names.append(name)
            norms.append((real(outputs[0].get("Norm")) if outputs else None) or math.nan)
    made.calls = zlib.compress("\n".join(names).encode("utf-8", "surrogatepass"))
    made.norms = norms.tobytes()
    return made


def ranks_said(ranks: Sequence[Any]) -> Sentence:
    """Return ranks as ranges.

    >>> str(ranks_said([0, 1, 2, 5])), str(ranks_said(["proc12"]))
    ('ranks 0-2, 5', 'rank proc12')
    """
    numbers = sorted(rank for rank in ranks if isinstance(rank, int))
    parts = [str(rank) for rank in ranks if not isinstance(rank, int)]
    for _, neighbours in itertools.groupby(enumerate(numbers), key=lambda item: item[1] - item[0]):
        first, *rest = (number for _, number in neighbours)
        parts.append(f"{first}-{rest[-1]}" if rest else str(first))
    return say("ranks.several" if len(ranks) > 1 else "ranks.one", ranks=", ".join(parts))


def _groups(values: dict[Any, Any]) -> list[list[Any]]:
    """Return the ranks that have one value each, the largest group first."""
    return sorted(grouped((value, rank) for rank, value in values.items()).values(), key=len, reverse=True)


def _apart(groups: list[list[Any]]) -> Sentence:
    most, *others = groups
    said = [say("ranks.agree" if len(most) > 1 else "ranks.one_value", ranks=ranks_said(most))]
    said += [say("ranks.do_not" if len(it) > 1 else "ranks.does_not", ranks=ranks_said(it)) for it in others[:3]]
    return say("list", parts=said)


def _finding(
    kind: str, key: str, digests: list[Digest], name: str, groups: list[list[Any]], more: Sentence = NOTHING
) -> RankFinding:
    """Return a finding about ranks that fall into groups; those of the first, the largest, are right."""
    said = say(key, name=name, more=more, groups=_apart(groups))
    return RankFinding(kind, digests[0].step, name, [rank for group in groups[1:] for rank in group], said)


def _data(digests: list[Digest]) -> list[RankFinding]:
    groups, first = _groups({item.rank: item.batch for item in digests if item.batch}), digests[0]
    return [
        RankFinding("data", first.step, first.batch_name, group[1:], say("ranks.data", ranks=ranks_said(group)))
        for group in groups if len(group) > 1
    ]  # fmt: skip


def _parameters(digests: list[Digest]) -> list[RankFinding]:
    names = [name for name in digests[0].parameters if all(name in item.parameters for item in digests)]
    grouped = {name: _groups({item.rank: item.parameters[name] for item in digests}) for name in names}
    wrong = {name: groups for name, groups in grouped.items() if len(groups) > 1}
    if not wrong or len(wrong) * 2 > len(names) > 3:  # nothing is replicated: each rank has its own part
        return []
    name, groups = next(iter(wrong.items()))
    more = say("ranks.more", count=len(wrong) - 1) if len(wrong) > 1 else NOTHING
    return [_finding("parameter", "ranks.parameter", digests, name, groups, more)]


def _collectives(digests: list[Digest]) -> list[RankFinding]:
    found: list[RankFinding] = []
    calls: dict[tuple[str, str, int], dict[Any, Any]] = {}
    names: dict[tuple[str, str, int], str] = {}
    for item in digests:
        counts: dict[tuple[str, str], int] = {}
        for group, key, name, contents in item.collectives:
            number = counts[group, key] = counts.get((group, key), -1) + 1
            calls.setdefault((group, key, number), {})[item.rank] = contents
            names.setdefault((group, key, number), name)
    for place, values in calls.items():
        name = place[1].rpartition(".")[2].lower().replace("_", "")
        known = {rank: value for rank, value in values.items() if value}
        groups = _groups(known) if name.startswith(_EQUAL_AFTER) else []
        if len(groups) > 1:
            found.append(_finding("collective", "ranks.collective", digests, names[place], groups))
    return found[:_MOST]


def _sequences(digests: list[Digest]) -> list[RankFinding]:
    groups = _groups({item.rank: tuple((call[0], call[1]) for call in item.collectives) for item in digests})
    if len(groups) > 1:
        first, other = (next(item for item in digests if item.rank == group[0]) for group in groups[:2])
        pairs = list(zip(first.collectives, other.collectives))
        place = next((i for i, (x, y) in enumerate(pairs) if x[:2] != y[:2]), len(pairs))
        longer = first if len(first.collectives) > place else other
        return [_finding("sequence", "ranks.sequence", digests, longer.collectives[place][2], groups)]
    groups = _groups({item.rank: item.calls for item in digests})
    if len(groups) == 1 or len(groups) == len(digests) > 2:
        return []
    names, others = (next(item for item in digests if item.rank == group[0]).call_names() for group in groups[:2])
    return [_finding("sequence", "ranks.calls", digests, min({*names} ^ {*others} or names[:1]), groups)]


def _outliers(digests: list[Digest]) -> list[RankFinding]:
    if len(digests) < _OUTLIER_RANKS:
        return []
    found: list[RankFinding] = []
    names = digests[0].call_names()
    columns = {item.rank: _norms(item, names, item.calls == digests[0].calls) for item in digests}
    for place, name in enumerate(names):
        logs = {rank: math.log(norms[place]) for rank, norms in columns.items() if 0 < norms[place] < math.inf}
        if not logs:
            continue
        middle = statistics.median(logs.values())
        spread = statistics.median(abs(value - middle) for value in logs.values()) * 1.4826
        far = [
            rank for rank, value in logs.items()
            if abs(value - middle) > max(_OUTLIER_Z * spread, math.log(_OUTLIER_FACTOR))
        ]  # fmt: skip
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

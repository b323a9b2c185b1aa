# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe nan``: the first call that makes NaN or Inf of finite inputs, over all steps and ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.compare.judging.judge import is_unwritten
from probe.reading.compare.origins.origin import CodeLine, Origin, Site, is_collective
from probe.reading.dumps import entry_name
from probe.reading.dumps.dump import Dump, look_into_dump
from probe.reading.dumps.entry_name import API, BACKWARD, GRADIENT
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.frames import user_frame
from probe.reading.dumps.run import Run
from probe.reading.dumps.values import Record, has_nan, has_nonfinite, is_tensor, leaves, plain, real
from probe.reading.dumps.work import HERE, Workers, run_units
from probe.reading.one_run.why import why
from probe.store.file_names import Rank

#: kinds of findings
MADE, NAN_OF_INF, GIVEN, GRADIENT_MADE, RECEIVED = "made", "NaN of Inf", "given", "gradient", "communication"
_ROAD, NEAR = 5, 0.9
#: dtype -> its largest number, of dtypes that overflow soon
LARGEST = {"Float16": 65504.0, "HiFloat8": 32768.0, "Float8E4M3FN": 448.0}
#: the kind of a finding, the place in the call, and the sentence
_Judged = tuple[str, str, Sentence]
_INPUTS, _OUTPUTS = ("input_args", "input_kwargs", "input", "parameters"), ("output", "output_kwargs")


class Found(NamedTuple):
    """The findings in one step of one rank."""

    step: int | None
    rank: Rank
    origins: list[Origin]  # calls that make NaN or Inf, in order
    near: list[Sentence]  # tensors close to the largest number of their dtype
    error: str = ""  # the reason why the dump could not be read
    lost: str = ""  # what could not be read of it
    told: Sequence[Sentence] = ()  # what guards have told while the training ran


def first_nan(run: Run, jobs: int = 1, scheduler: str = "") -> Origin | None:
    """Return the first call that makes NaN or Inf of finite inputs; None where all is finite.

    A collective is named only if no rank has made NaN or Inf before.

    Args:
        run: the run.
        jobs: how many processes work.
        scheduler: the address of a Dask scheduler, whose workers do it instead.

    Raises:
        UsageError: when the cluster cannot do it.

    Example::

        finding = probe.first_nan(probe.open("dump_path"))
        if finding:
            print(finding.sentence, finding.file, finding.line)
    """
    found = in_order(look_at_all(run, Workers(jobs, scheduler)))
    return found[0] if found else None


def look_at_all(run: Run, workers: Workers = HERE) -> list[Found]:
    """Return the findings in every step of every rank."""
    return list(run_units(look_at, [(folder,) for folder in run.folders], workers, "looking for NaN/Inf"))


def in_order(units: Sequence[Found]) -> list[Origin]:
    """Return the calls that make NaN or Inf, of all steps and ranks, the earliest step first."""
    origins: list[Origin] = []
    for step in dict.fromkeys(unit.step for unit in units):
        of_step = [origin for unit in units if unit.step == step for origin in unit.origins]
        own = [origin for origin in of_step if origin.kind != RECEIVED]
        origins += sorted(own or of_step, key=lambda origin: origin.site.order)
    return origins


def look_at(folder: DumpFolder) -> Found:
    """Return the calls that make NaN or Inf in one step of one rank."""
    return look_into_dump(
        folder, look_into, lambda reason: Found(folder.step, folder.rank, [], [], reason, told=folder.told())
    )


def look_into(dump: Dump) -> Found:
    """Return the calls that make NaN or Inf in a dump; raise UsageError when it cannot be read."""
    finder = Finder(dump)
    origins, told = list(finder.origins())[:20], dump.folder.told()
    return Found(dump.step, dump.rank, origins, finder.near, "", dump.document.lost, told)


class Finder:
    """Looks through one dump."""

    def __init__(self, dump: Dump) -> None:
        self._dump = dump
        self.near: list[Sentence] = []  # tensors close to the largest number of their dtype
        self._strange = {
            name: [place for place, record in _records(entry) if has_nonfinite(record)]
            for name, entry in dump.data.items()
            if isinstance(entry, dict) and self._is_strange(name, entry)
        }

    def _is_strange(self, name: str, entry: dict[str, Any]) -> bool:
        strange = False
        for place, record in _records(entry):
            strange = strange or has_nonfinite(record)
            largest = LARGEST.get(str(record.get("dtype")))
            high = max(abs(real(record.get(key)) or 0.0) for key in ("Max", "Min")) if largest else 0.0
            if largest and largest > high > NEAR * largest and len(self.near) < 10:
                facts = {"value": high, "largest": largest, "dtype": record["dtype"]}
                self.near.append(say("nan.near", name=f"{name}.{place}", **facts))
        return strange

    def origins(self) -> Iterator[Origin]:
        """Yield the calls that make NaN or Inf, in order."""
        if not self._strange:
            return
        flow = self._dump.flow
        for place, name in enumerate(flow.names):
            if name not in self._strange or name in flow.containers:
                continue
            judge = self._backward if flow.parts[place].direction == BACKWARD else self._forward
            finding = judge(flow, place)
            if finding is not None:
                yield self._origin(flow, place, *finding)

    def _forward(self, flow: Flow, place: int) -> _Judged | None:  # noqa: PLR0911
        """Return (kind, place, sentence) of a forward that is to blame."""
        name, parts = flow.names[place], flow.parts[place]
        entry = self._dump.data[name]
        made = [item for item in _outputs(entry, parts) if has_nonfinite(item[1])]
        given = [item for item in _inputs(entry) if has_nonfinite(item[1])]
        for where, record in given:
            link = next((link for link in flow.links[place] if link.place == where), None)
            outside = where.startswith("parameters") or (link is not None and link.producer < 0)
            if outside and not is_collective(parts) and not _is_mask(record):
                return GIVEN, where, self._given(name, where, record, link.parameter if link else None)
        if made and is_collective(parts):
            sent = [item for item in given if not _is_buffer(parts, item[0])]
            return None if sent else (RECEIVED, made[0][0], say("nan.received", name=name, what=_word(made[0][1])))
        if not made:
            return None
        where, record = made[0]
        if not given:
            if _is_mask(record) and (_has_infinite_argument(entry) or not self._is_used_badly(flow, place)):
                return None
            return MADE, where, say("nan.made", name=name, what=_word(record))
        if any(has_nan(item[1]) for item in made) and not any(has_nan(item[1]) for item in given):
            return NAN_OF_INF, where, say("nan.of_inf", name=name, place=given[0][0], what=_word(given[0][1]))
        return None

    def _given(self, name: str, where: str, record: Record, owner: tuple[str, str] | None) -> Sentence:
        whose = say("nan.owner", parameter=owner[1], cell=entry_name.cell_label(owner[0])) if owner else NOTHING
        since = say("nan.since", step=self._dump.step) if where.startswith("parameters") else NOTHING
        return say("nan.given", name=name, what=_word(record), place=where, owner=whose, since=since)

    def _is_used_badly(self, flow: Flow, place: int) -> bool:
        """Return whether this -Inf leads to NaN or another Inf, or is the last that is recorded of it: no mask is."""
        waiting, seen = [place], set()
        while waiting:
            place = waiting.pop()
            seen.add(place)
            users = flow.used_by.get(place, ())
            if (
                not users and flow.parts[place].kind == API
            ):  # level L0 does not record the calls that use a Cell's output
                return True
            for user in users:
                outputs = _outputs(self._dump.data[flow.names[user]], flow.parts[user])
                strange = [record for _, record in outputs if has_nonfinite(record)]
                if not all(map(_is_mask, strange)):
                    return True
                if strange and user not in seen:
                    waiting.append(user)
        return False

    def _backward(self, flow: Flow, place: int) -> _Judged | None:
        name, parts = flow.names[place], flow.parts[place]
        entry = self._dump.data[name]
        if parts.kind == GRADIENT:
            others = [flow.position[other] for other in self._strange if other != name]
            backwards = {flow.parts[other].kind for other in others if flow.parts[other].direction == BACKWARD}
            if min(others, default=place) < place or not backwards <= {GRADIENT}:
                return None
            return GRADIENT_MADE, self._strange[name][0], say("nan.gradient", name=name)
        key = "nan.backward"
        if any(has_nonfinite(record) for _, record in _inputs(entry)) or parts.forward in self._strange:
            key = "nan.arrived"  # though everything before is finite: an operation was not recorded
            if any(flow.position[other] < place for other in self._strange):
                return None
        return GRADIENT_MADE, self._strange[name][0], say(key, name=name)

    def _origin(self, flow: Flow, place: int, kind: str, where: str, said: Sentence) -> Origin:
        call = self._dump[flow.names[place]]
        site = Site(call.name, where, call.cell, self._dump.step, self._dump.rank, place)
        code = CodeLine(call.stack, user_frame(call.stack))
        if kind in (MADE, NAN_OF_INF, GRADIENT_MADE):
            said = clauses(said, why(call))
        return Origin(kind, site, said, code, more=self._road(flow, place))

    def _road(self, flow: Flow, place: int) -> list[str]:
        """Return the next calls that NaN or Inf passes through."""
        road: list[str] = []
        while len(road) < _ROAD:
            users = [user for user in flow.used_by.get(place, ()) if flow.names[user] in self._strange]
            if not users or users[0] <= place:
                break
            place = users[0]
            road.append(flow.names[place])
        return road


def _records(entry: dict[str, Any]) -> Iterator[tuple[str, Record]]:
    for key, part in entry.items():
        word = {"input_args": "input", "input_kwargs": "kwargs"}.get(key, key)
        for place, record in leaves(part):
            if is_tensor(record):
                yield f"{word}.{place}", record


def _inputs(entry: Any) -> list[tuple[str, Record]]:
    return list(_records({key: entry[key] for key in _INPUTS if key in entry}))


def _outputs(entry: Any, parts: entry_name.EntryName) -> list[tuple[str, Record]]:
    found = _records({key: entry[key] for key in _OUTPUTS if key in entry}) if isinstance(entry, dict) else ()
    return [item for item in found if not is_unwritten(parts, item[0]) and not item[1].get("unwritten")]


def _is_mask(record: Record) -> bool:
    """Return whether a tensor has nothing worse than -Inf, as masks have on purpose."""
    high, low = real(record.get("Max")), real(record.get("Min"))
    return low == -math.inf and high is not None and high < math.inf and not real(record.get("nan_count"))


def _has_infinite_argument(entry: dict[str, Any]) -> bool:
    values = [plain(leaf) for key in ("input_args", "input_kwargs") for _, leaf in leaves(entry.get(key)) if leaf]
    return any(isinstance(value, float) and math.isinf(value) for value in values)


def _is_buffer(parts: entry_name.EntryName, place: str) -> bool:
    """Return whether an input is memory that a collective writes into."""
    return place.startswith("input.0") and any(word in parts.api.lower() for word in ("recv", "gather", "scatter"))


def _word(record: Record) -> str:
    return "NaN" if has_nan(record) else "-Inf" if _is_mask(record) else "Inf"

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe nan``: the first call that makes NaN or Inf of finite inputs, and why, over all steps and ranks.

Arrays or statistics tell why: which elements of which input.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.compare.judging.judge import is_unwritten
from probe.reading.compare.origins.origin import CodeLine, Origin, Site
from probe.reading.dumps.call_kinds import is_collective
from probe.reading.dumps.dump import Call, Dump, Tensor, look_into_dump
from probe.reading.dumps.entry_name import API, BACKWARD, GRADIENT, EntryName, cell_label
from probe.reading.dumps.flow import Flow, user_frame
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.run import Run
from probe.reading.dumps.values import (
    Record,
    greatest,
    has_nan,
    has_nonfinite,
    is_tensor,
    leaves,
    plain_values,
    real,
)
from probe.reading.dumps.work import HERE, Workers, run_units
from probe.reading.one_run.coverage import Coverage, coverage
from probe.store.file_names import Rank

#: the most elements that are looked at
_MOST = 50_000_000
_DIVISIONS = (
    r"(__r?truediv__|__r?div__|true_?div(ide)?|real_?div|div(_?mod)?s?(ide)?(_?ext)?|floor_?div(ide)?|__floordiv__|"
    r"__r?mod__|fmod|remainder)$"
)
#: reasons that need -Inf in the input: a row in which nothing else is
_ROWS = re.compile(r"(log_?)?softmax(_?ext)?$|__r?sub__$|sub(_?ext)?$|logsumexp$", re.IGNORECASE)
_ENTROPY = re.compile(r"cross_?entropy|nll_?loss", re.IGNORECASE)
_MEANS = re.compile(
    r"(reduce)?_?(mean|std|var)(_?ext)?$|^(mse|l1|smooth_?l1|huber)_?loss", re.IGNORECASE
)
_HYPERBOLIC = re.compile(r"^(sinh?|cosh?|asinh|acosh)$")
#: kinds of findings
MADE = "made"
NAN_OF_INF = "NaN of Inf"
GIVEN = "given"
GRADIENT_MADE = "gradient"
RECEIVED = "communication"
_ROAD = 5
NEAR = 0.9
#: dtype -> its largest number, of dtypes that overflow soon
LARGEST = {"Float16": 65504.0, "HiFloat8": 32768.0, "Float8E4M3FN": 448.0}
#: wide dtype -> its largest number. An input above this part of its root may have products beyond it.
_WIDE = {"Float32": 3.4028234663852886e38, "BFloat16": 3.3895313892515355e38}
_PART = 0.01
#: Float16: a sum of some products of numbers above this one may be beyond its largest number
_LARGE_HALF = 60
_POWER = re.compile(r"(__i?)?pow(__)?$")
#: the kind of a finding, the place in the call, and the sentence
_Judged = tuple[str, str, Sentence]
#: a reason -> the same where the ends alone tell that some elements have it
_OF_SOME = {"why.divisor_zero": "why.divisor_has_zero"}
_INPUTS = ("input_args", "input_kwargs", "input", "parameters")
_OUTPUTS = ("output", "output_kwargs")


class Reason(NamedTuple):
    """A reason why calls of some names make NaN or Inf."""

    apis: str  # a regular expression for the last word of the name
    place: str  # the input that it looks at
    key: str
    holds: Callable[[Any], Any]  # returns which elements are to blame
    by_ends: Callable[[float, float], bool]  # returns whether Min and Max alone tell it
    in_backward: bool = False  # whether it is one of the backward; else of the forward


def _touches_zero(low: float, high: float) -> bool:
    return low == 0 or high == 0


def _is_negative(low: float, high: float) -> bool:
    return low < 0


REASONS = (
    Reason(_DIVISIONS, "1", "why.divisor_zero", lambda x: x == 0, _touches_zero),
    Reason(r"(reciprocal|inv)$", "0", "why.divisor_zero", lambda x: x == 0, _touches_zero),
    Reason(r"r?sqrt$", "0", "why.sqrt_negative", lambda x: x < 0, _is_negative),
    Reason(r"rsqrt$", "0", "why.sqrt_zero", lambda x: x == 0, _touches_zero),
    Reason(
        r"(sqrt|norm|vector_?norm|std(_?ext)?|dist|cdist)$",
        "0",
        "why.sqrt_slope",
        lambda x: x == 0,
        _touches_zero,
        in_backward=True,
    ),
    Reason(r"log(2|10)?$", "0", "why.log_negative", lambda x: x < 0, _is_negative),
    Reason(r"log(2|10)?$", "0", "why.log_zero", lambda x: x == 0, _touches_zero),
    Reason(r"log1p$", "0", "why.log_negative", lambda x: x < -1, lambda low, high: low < -1),
    Reason(
        r"(a?cos|a?sin)h?$",
        "0",
        "why.domain",
        lambda x: abs(x) > 1,
        lambda low, high: low < -1 or high > 1,
    ),
    Reason(r"exp(2|m1)?$", "0", "why.exp", lambda x: x > 88, lambda low, high: high > 88),
)


#: reasons of a power: the exponent is no whole number, or it is below zero
_OF_FRACTION = Reason("", "0", "why.power", lambda x: x < 0, _is_negative)
_OF_NEGATIVE = Reason("", "0", "why.power_zero", lambda x: x == 0, _touches_zero)


def why(call: Call) -> Sentence:
    """Return why a call makes NaN or Inf, with the number of elements and the first index; else no sentence."""
    forward = call.dump.get(call.parts.forward) if call.parts.direction == "backward" else call
    if forward is None:
        return NOTHING
    in_backward = forward is not call
    inputs = forward.inputs
    api = call.parts.api.lower()
    api = api if api.endswith("__") else api.rstrip("_")
    for reason in REASONS:
        if reason.in_backward and not in_backward:
            continue
        if re.match(reason.apis, api) and not _HYPERBOLIC.match(api):
            place = "0" if reason.place == "1" and api.startswith("__r") else reason.place
            said = _blame(
                inputs.get(place, inputs.get("other" if place == "1" else "input")), reason
            )
            if said:
                return said
    return (
        _of_power(inputs, api, in_backward)
        or _of_rows(inputs, api)
        or _of_labels(inputs, api)
        or _of_size(inputs, call, api)
    )


def _blame(value: Any, reason: Reason) -> Sentence:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return say(reason.key) if reason.holds(np.float64(value)) else NOTHING
    if not isinstance(value, Tensor):
        return NOTHING
    array = array_of(value)
    if array is None:
        low = value.min
        high = value.max
        ends = [item for item in (low, high) if isinstance(item, (int, float))]
        if len(ends) == 2 and reason.by_ends(float(ends[0]), float(ends[1])):
            return say(
                "why.by_ends",
                what=say(_OF_SOME.get(reason.key, reason.key) if low != high else reason.key),
                place=value.place,
                low=float(ends[0]),
                high=float(ends[1]),
            )
        return NOTHING
    return _counted(say(reason.key), reason.holds(array))


def _counted(what: Sentence, found: Any) -> Sentence:
    """Return a reason with the number of the elements that have it, and the first index."""
    count = int(np.count_nonzero(found))
    if not count:
        return NOTHING
    places = [int(place) for place in np.unravel_index(int(np.argmax(found)), found.shape)]
    return say(
        "why.elements",
        what=what,
        count=count,
        all=int(found.size),
        index=say("why.index", places=places),
    )


def _of_power(inputs: dict[str, Any], api: str, in_backward: bool) -> Sentence:
    """Return that a base has no power of this exponent.

    The slope of a power has an exponent that is less by one. Nothing is said where elements have several exponents.
    """
    if not _POWER.match(api):
        return NOTHING
    given = inputs.get("1", inputs.get("exponent", inputs.get("other")))
    if isinstance(given, Tensor):
        given = given.min if given.min == given.max else None
    if not isinstance(given, (int, float)) or not math.isfinite(given):
        return NOTHING
    exponent = given - in_backward
    base = inputs.get("0", inputs.get("input"))
    said = _blame(base, _OF_FRACTION) if exponent % 1 else NOTHING
    return said or (_blame(base, _OF_NEGATIVE) if exponent < 0 else NOTHING)


def _of_rows(inputs: dict[str, Any], api: str) -> Sentence:
    """Return that a row holds nothing but -Inf: a softmax of it is Inf - Inf."""
    given = inputs.get("0", inputs.get("input"))
    array = array_of(given) if _ROWS.match(api) else None
    if array is None or array.ndim < 1:
        return NOTHING
    if "sub" in api:
        second = array_of(inputs.get("1"))
        if second is None:
            return NOTHING
        with np.errstate(all="ignore"):
            return _counted(say("why.inf_minus_inf"), np.isinf(array) & (array == second))
    rows = np.isneginf(array).all(axis=-1)
    return _counted(say("why.masked_row"), np.asarray(rows))


def _of_labels(inputs: dict[str, Any], api: str) -> Sentence:
    """Return that all labels are ignored: their mean is 0 / 0."""
    labels = inputs.get("1", inputs.get("target"))
    if not _ENTROPY.search(api) or not isinstance(labels, Tensor) or labels.min != labels.max:
        return NOTHING
    integers = [value for value in inputs.values() if type(value) is int and value < 0]
    if labels.max not in (integers or [-100]):
        return NOTHING
    return say("why.ignored", count=int(np.prod(labels.shape or [1])), value=labels.max)


def _of_size(inputs: dict[str, Any], call: Call, api: str) -> Sentence:
    """Return that a mean of no element is asked for, or that the result is beyond its dtype."""
    tensors = [value for value in inputs.values() if isinstance(value, Tensor)]
    if _MEANS.match(api) and tensors and 0 in (tensors[0].shape or []):
        return say("why.empty")
    made = next((value for value in call.outputs.values() if isinstance(value, Tensor)), None)
    if made is None:
        return NOTHING
    ends = [end for item in tensors for end in (item.max, item.min)]
    sizes = [abs(end) for end in ends if isinstance(end, (int, float))]
    if not all(map(math.isfinite, sizes)):
        return NOTHING  # an input that is NaN/Inf explains the result
    largest = max(sizes, default=0.0)
    if made.dtype == "Float16" and largest > _LARGE_HALF:
        return say("why.overflow", dtype=made.dtype, largest=LARGEST[made.dtype])
    beyond = _WIDE.get(str(made.dtype), math.inf)
    is_inf = any(isinstance(end, float) and math.isinf(end) for end in (made.max, made.min))
    if is_inf and largest > _PART * math.sqrt(beyond):
        return say("why.overflow", dtype=made.dtype, largest=beyond)
    return NOTHING


def array_of(tensor: Any) -> Any:
    """Return the array of a tensor; None where it has none, or one that is a part or too large."""
    try:
        if (
            not isinstance(tensor, Tensor)
            or tensor.path is None
            or np.prod(tensor.shape or [1]) > _MOST
        ):
            return None
        array = tensor.array()
    except UsageError:
        return None
    return array.astype(np.float64) if list(array.shape) == list(tensor.shape or []) else None


class Found(NamedTuple):
    """The findings in one step of one rank."""

    step: int | None
    rank: Rank
    origins: list[Origin]  # calls that make NaN or Inf, in order
    near: list[Sentence]  # tensors close to the largest number of their dtype
    error: Sentence = NOTHING  # the reason why the dump could not be read
    lost: Sentence = NOTHING  # what could not be read of it
    told: Sequence[Sentence] = ()  # what guards have told while the training ran
    coverage: Coverage = Coverage()  # how much was looked at


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
    return list(
        run_units(look_at, [(folder,) for folder in run.folders], workers, say("progress.nan"))
    )


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

    def unread(reason: Sentence) -> Found:
        return Found(folder.step, folder.rank, [], [], reason, told=folder.told())

    return look_into_dump(folder, look_into, unread)


def look_into(dump: Dump) -> Found:
    """Return the calls that make NaN or Inf in a dump; raise UsageError when it cannot be read."""
    finder = Finder(dump)
    origins = list(finder.origins())[:20]
    told = dump.folder.told()
    return Found(
        dump.step,
        dump.rank,
        origins,
        finder.near,
        NOTHING,
        dump.document.lost,
        told,
        coverage(dump),
    )


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
            largest = LARGEST.get(str(record.get("dtype")), 0.0)
            high = greatest(record)
            if largest > high > NEAR * largest and len(self.near) < 10:
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
        name = flow.names[place]
        parts = flow.parts[place]
        entry = self._dump.data[name]
        made = [item for item in _outputs(entry, parts) if has_nonfinite(item[1])]
        given = [item for item in _inputs(entry) if has_nonfinite(item[1])]
        for where, record in given:
            link = next((link for link in flow.links[place] if link.place == where), None)
            outside = where.startswith("parameters") or (link is not None and link.producer < 0)
            if outside and not is_collective(parts) and not _is_mask(record):
                return (
                    GIVEN,
                    where,
                    self._given(name, where, record, link.parameter if link else None),
                )
        if made and is_collective(parts):
            sent = [item for item in given if not _is_buffer(parts, item[0])]
            return (
                None
                if sent
                else (RECEIVED, made[0][0], say("nan.received", name=name, what=_word(made[0][1])))
            )
        if not made:
            return None
        where, record = made[0]
        if not given:
            if _is_mask(record) and (
                _has_infinite_argument(entry) or not self._is_used_badly(flow, place)
            ):
                return None
            return MADE, where, say("nan.made", name=name, what=_word(record))
        if any(has_nan(item[1]) for item in made) and not any(has_nan(item[1]) for item in given):
            return (
                NAN_OF_INF,
                where,
                say("nan.of_inf", name=name, place=given[0][0], what=_word(given[0][1])),
            )
        return None

    def _given(
        self, name: str, where: str, record: Record, owner: tuple[str, str] | None
    ) -> Sentence:
        whose = (
            say("nan.owner", parameter=owner[1], cell=cell_label(owner[0])) if owner else NOTHING
        )
        since = (
            say("nan.since", step=self._dump.step) if where.startswith("parameters") else NOTHING
        )
        return say(
            "nan.given", name=name, what=_word(record), place=where, owner=whose, since=since
        )

    def _is_used_badly(self, flow: Flow, place: int) -> bool:
        """Return whether this -Inf leads to NaN or another Inf, or is the last that is recorded of it: no mask is."""
        waiting = [place]
        seen = set()
        while waiting:
            place = waiting.pop()
            seen.add(place)
            users = flow.used_by.get(place, ())
            if (
                not users and flow.parts[place].kind == API
            ):  # level L0 does not record the users of a Cell's output
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
        name = flow.names[place]
        parts = flow.parts[place]
        entry = self._dump.data[name]
        if parts.kind == GRADIENT:
            others = [flow.position[other] for other in self._strange if other != name]
            backwards = {
                flow.parts[other].kind
                for other in others
                if flow.parts[other].direction == BACKWARD
            }
            if min(others, default=place) < place or not backwards <= {GRADIENT}:
                return None
            return GRADIENT_MADE, self._strange[name][0], say("nan.gradient", name=name)
        key = "nan.backward"
        if (
            any(has_nonfinite(record) for _, record in _inputs(entry))
            or parts.forward in self._strange
        ):
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
        road: list[str] = []
        while len(road) < _ROAD:
            users = [
                user for user in flow.used_by.get(place, ()) if flow.names[user] in self._strange
            ]
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


def _outputs(entry: Any, parts: EntryName) -> list[tuple[str, Record]]:
    found = (
        _records({key: entry[key] for key in _OUTPUTS if key in entry})
        if isinstance(entry, dict)
        else ()
    )
    return [
        item for item in found if not is_unwritten(parts, item[0]) and not item[1].get("unwritten")
    ]


def _is_mask(record: Record) -> bool:
    """Return whether a tensor has nothing worse than -Inf, as masks have on purpose."""
    high = real(record.get("Max"))
    low = real(record.get("Min"))
    return (
        low == -math.inf
        and high is not None
        and high < math.inf
        and not real(record.get("nan_count"))
    )


def _has_infinite_argument(entry: dict[str, Any]) -> bool:
    return any(isinstance(value, float) and math.isinf(value) for value in plain_values(entry))


def _is_buffer(parts: EntryName, place: str) -> bool:
    return place.startswith("input.0") and any(
        word in parts.api.lower() for word in ("recv", "gather", "scatter")
    )


def _word(record: Record) -> str:
    return "NaN" if has_nan(record) else "-Inf" if _is_mask(record) else "Inf"

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Facts that hold for each right kernel: a softmax sums to 1, a sigmoid is in [0, 1], a reshape keeps values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from probe.findings.sentence import Sentence, say
from probe.reading.dumps.entry_name import CELL, EntryName
from probe.reading.dumps.flow import Link
from probe.reading.dumps.values import Record, element_count, is_tensor, plain, real
from probe.reading.one_run.health.step import FAULT, SUSPICIOUS, HealthFinding, Step
from probe.reading.one_run.nan import array_of

INVARIANT = "invariant"  # the rule's name

#: the first words of entries of MindSpore's own functions; a Cell may be another class of the same name
_OWN = ("Functional", "Mint", "MintFunctional", "Tensor", "Primitive", "Numpy")
#: dtype -> the distance of 1 from the next number, the part of an element that may be lost because it is too small
_ROUNDINGS = {
    "Float16": (2.0**-10, 2.0**-14),
    "BFloat16": (2.0**-7, 2.0**-126),
    "Float32": (2.0**-23, 2.0**-126),
    "Float64": (2.0**-52, 2.0**-1022),
}
_LEAST = 1e-3  # a smaller difference is not told, whatever the dtype
#: operation -> the least and the greatest value, and whether the least is exact
_RANGES = {
    "softmax": (0.0, 1.0),
    "sigmoid": (0.0, 1.0),
    "hardsigmoid": (0.0, 1.0),
    "tanh": (-1.0, 1.0),
    "erf": (-1.0, 1.0),
    "sin": (-1.0, 1.0),
    "cos": (-1.0, 1.0),
    "relu": (0.0, math.inf),
    "relu6": (0.0, 6.0),
    "exp": (0.0, math.inf),
    "abs": (0.0, math.inf),
    "square": (0.0, math.inf),
    "sqrt": (0.0, math.inf),
    "softplus": (0.0, math.inf),
    "log_softmax": (-math.inf, 0.0),
    "logsoftmax": (-math.inf, 0.0),
}
_MOVES = frozenset(
    "reshape view transpose permute swapaxes swapdims t T squeeze unsqueeze expand_dims flatten ravel flip roll "
    "movedim moveaxis contiguous clone Reshape Transpose ExpandDims Squeeze Flatten".split()
)
_PRODUCTS = (
    "matmul",
    "__matmul__",
    "mm",
    "bmm",
    "MatMul",
    "BatchMatMul",
    "MatMulExt",
    "BatchMatMulExt",
)
_SLACK = 0.05  # products of coarse inputs, as in HF32
_MOST_AXES = 4


class _Numbers(NamedTuple):
    """The statistics of a tensor with fractions; all of them are finite."""

    low: float
    high: float
    mean: float
    shape: list[int]
    dtype: str


def in_step(step: Step) -> Iterator[HealthFinding]:
    """Yield the calls of one step whose outputs no right kernel gives."""
    for place, parts, entry in step.forwards():
        if parts.kind != CELL and parts.prefix not in _OWN:
            continue
        made = step.outputs(place)
        numbers = _numbers(made[0]) if made else None
        if numbers is None:
            continue
        links = step.flow.links[place]
        weight = SUSPICIOUS if parts.kind == CELL else FAULT
        name = step.flow.names[place]
        said = _range(name, parts, numbers, links)
        if parts.api in _MOVES:
            said = said or _moved(name, numbers, made[0], links)
        elif parts.api in _PRODUCTS:
            said = said or _product(name, made[0], links)
        elif parts.api.lower() == "softmax" and said is None:
            said = _softmax(step, place, parts, entry, numbers)
            if said is not None and said.key == "health.maybe_masked":
                weight = SUSPICIOUS
        if said is not None:
            yield step.found(weight, INVARIANT, said, place)


def _numbers(record: Any) -> _Numbers | None:
    """Return the statistics of a tensor with fractions; None where one is not known, or NaN or Inf."""
    if not is_tensor(record) or record.get("dtype") not in _ROUNDINGS:
        return None
    low = real(record.get("Min"))
    high = real(record.get("Max"))
    mean = real(record.get("Mean"))
    shape = record.get("shape")
    if low is None or high is None or mean is None or not element_count(shape):
        return None
    if not all(map(math.isfinite, (low, high, mean))):
        return None
    return _Numbers(low, high, mean, list(shape), str(record["dtype"]))


def _size(record: Record) -> float:
    """Return the greatest size of a finite end of a tensor."""
    ends = [real(record.get(key)) for key in ("Min", "Max")]
    return max((abs(end) for end in ends if end is not None and math.isfinite(end)), default=0.0)


# -- ranges ---------------------------------------------------------------------------------------------------------


def _range(name: str, parts: EntryName, made: _Numbers, links: Sequence[Link]) -> Sentence | None:
    """Return that a function gives a number that it never gives."""
    api = parts.api.rstrip("_").lower()
    if api not in _RANGES:
        return None
    low, high = _RANGES[api]
    given = max((_size(link.record) for link in links), default=0.0) if "log" in api else 1.0
    room = max(_LEAST, 8 * _ROUNDINGS[made.dtype][0]) * max(given, 1.0)
    value = made.high if made.high > high + room else made.low
    if low - room <= value <= high + room:
        return None
    return say("health.out_of_range", name=name, value=value, low=low, high=high)


# -- softmax --------------------------------------------------------------------------------------------------------


def _softmax(
    step: Step, place: int, parts: EntryName, entry: dict[str, Any], made: _Numbers
) -> Sentence | None:
    """Return that rows of a softmax do not sum to 1. Rows that are -Inf alone have no sum."""
    name = step.flow.names[place]
    axes = _axes(parts, entry, made.shape)
    sums = [made.mean * _length(made.shape, one) for one in axes]
    rooms = [_room(made.dtype, _length(made.shape, one)) for one in axes]
    if not axes or any(abs(total - 1) <= room for total, room in zip(sums, rooms)):
        return None
    total = min(sums, key=lambda one: abs(one - 1))
    links = step.flow.links[place]
    given = links[0].record if links else {}
    ends = [real(given.get(key)) for key in ("Min", "Max")]
    if None in ends or any(
        end is not None and (math.isnan(end) or end == math.inf) for end in ends
    ):
        return None
    if ends[0] != -math.inf:
        return say("health.not_one", name=name, sum=total)
    if total > 1:
        return say("health.not_one", name=name, sum=total)
    rows = _wrong_rows(step, name, axes) if len(axes) == 1 else None
    if rows is None:
        return say("health.maybe_masked", name=name, sum=total)
    count, size, first = rows
    return (
        say("health.rows_not_one", name=name, count=count, all=size, row=first) if count else None
    )


def _room(dtype: str, length: int) -> float:
    """Return by how much the sum of a row of such a length may differ from 1."""
    rounding, tiny = _ROUNDINGS[dtype]
    return max(_LEAST, rounding * (8 + 0.5 * math.sqrt(length))) + length * tiny


def _length(shape: Sequence[int], axes: Sequence[int]) -> int:
    return math.prod(shape[axis] for axis in axes)


def _axes(parts: EntryName, entry: dict[str, Any], shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the axes over which it sums; all that are possible if the record does not tell them."""
    count = len(shape)
    own = _own_axes(parts, entry)
    if own is None:
        if count > _MOST_AXES:
            return []
        sizes = range(1, count + 1)
        return [one for size in sizes for one in itertools.combinations(range(count), size)]
    if any(not -count <= axis < count for axis in own):
        return []
    return [tuple(axis % count for axis in own)]


def _own_axes(parts: EntryName, entry: dict[str, Any]) -> list[int] | None:
    """Return the axes of the record; None where it does not tell them."""
    if parts.kind == CELL:
        return None
    if parts.prefix == "Primitive":
        value = (entry.get("attributes") or {}).get("axis")
    else:
        named = entry.get("input_kwargs") or {}
        given = entry.get("input_args") or []
        second = given[1] if type(given) is list and len(given) > 1 else None
        value = named.get("axis", named.get("dim", second))
        if value is None and parts.prefix == "Functional":
            return [-1]
    items = [plain(item) for item in (value if type(value) is list else [value])]
    return items if items and all(type(item) is int for item in items) else None


def _wrong_rows(
    step: Step, name: str, axes: Sequence[tuple[int, ...]]
) -> tuple[int, int, str] | None:
    """Return how many rows do not sum to 1 though they must, of how many, and the first; None without arrays."""
    call = step.dump[name]
    given = array_of(next(iter(call.inputs.values()), None))
    made = array_of(next(iter(call.outputs.values()), None))
    if given is None or made is None or given.shape != made.shape:
        return None
    (axis,) = axes
    dtype = str(next(iter(call.outputs.values())).dtype)
    room = _room(dtype, _length(made.shape, axis))
    highest = given.max(axis=axis)
    with np.errstate(invalid="ignore"):
        wrong = np.isfinite(highest) & ~(np.abs(made.sum(axis=axis) - 1) <= room)
    places = np.argwhere(wrong)
    first = str([int(place) for place in places[0]]) if len(places) else ""
    return len(places), int(wrong.size), first


# -- values that move, and products ---------------------------------------------------------------------------------


def _moved(name: str, made: _Numbers, record: Record, links: Sequence[Link]) -> Sentence | None:
    """Return that an operation which only moves values has changed one."""
    given = _numbers(links[0].record) if len(links) == 1 else None
    if given is None or given.dtype != made.dtype:
        return None
    if element_count(given.shape) != element_count(made.shape):
        return None
    for key, before, after in (("Min", given.low, made.low), ("Max", given.high, made.high)):
        if before != after:
            return say("health.moved", name=name, number=key, before=before, after=after)
    return None


def _product(name: str, record: Record, links: Sequence[Link]) -> Sentence | None:
    """Return that a product of matrices is larger than the norms of its factors allow."""
    if len(links) != 2:
        return None
    norms = [real(one.get("Norm")) for one in (links[0].record, links[1].record, record)]
    left, right, made = (math.nan if norm is None else norm for norm in norms)
    bound = left * right
    if not (math.isfinite(made) and math.isfinite(bound)) or made <= bound * (1 + _SLACK) + _LEAST:
        return None
    return say("health.product", name=name, norm=made, bound=bound)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Why a call makes NaN or Inf of finite inputs: which elements of which input, by the arrays or the statistics."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.dumps.dump import Call, Tensor

#: the most elements that are looked at
_MOST = 50_000_000
_DIVISIONS = (
    r"(__r?truediv__|__r?div__|true_?div(ide)?|real_?div|div(_?mod)?s?(ide)?(_?ext)?|floor_?div(ide)?|__floordiv__|"
    r"__r?mod__|fmod|remainder)$"
)


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
    Reason(r"(sqrt|norm|vector_?norm|std(_?ext)?|dist|cdist)$", "0", "why.sqrt_slope", lambda x: x == 0, _touches_zero,
           in_backward=True),
    Reason(r"log(2|10)?$", "0", "why.log_negative", lambda x: x < 0, _is_negative),
    Reason(r"log(2|10)?$", "0", "why.log_zero", lambda x: x == 0, _touches_zero),
    Reason(r"log1p$", "0", "why.log_negative", lambda x: x < -1, lambda low, high: low < -1),
    Reason(r"(a?cos|a?sin)h?$", "0", "why.domain", lambda x: abs(x) > 1, lambda low, high: low < -1 or high > 1),
    Reason(r"(__)?pow(__)?$", "0", "why.power", lambda x: x < 0, _is_negative),
    Reason(r"(__)?pow(__)?$", "0", "why.power_zero", lambda x: x == 0, _touches_zero),
    Reason(r"exp(2|m1)?$", "0", "why.exp", lambda x: x > 88, lambda low, high: high > 88),
)  # fmt: skip
#: reasons that need -Inf in the input: a row in which nothing else is
_ROWS = re.compile(r"(log_?)?softmax(_?ext)?$|__r?sub__$|sub(_?ext)?$|logsumexp$", re.IGNORECASE)
_ENTROPY = re.compile(r"cross_?entropy|nll_?loss", re.IGNORECASE)
_MEANS = re.compile(r"(reduce)?_?(mean|std|var)(_?ext)?$|^(mse|l1|smooth_?l1|huber)_?loss", re.IGNORECASE)
_HYPERBOLIC = re.compile(r"^(sinh?|cosh?|asinh|acosh)$")


def why(call: Call) -> Sentence:
    """Return why a call makes NaN or Inf, with the number of elements and the first index; else no sentence."""
    forward = call.dump.get(call.parts.forward) if call.parts.direction == "backward" else call
    if forward is None:
        return NOTHING
    in_backward, inputs, api = forward is not call, forward.inputs, call.parts.api.lower()
    api = api if api.endswith("__") else api.rstrip("_")
    for reason in REASONS:
        if reason.in_backward and not in_backward:
            continue
        if re.match(reason.apis, api) and not _HYPERBOLIC.match(api):
            place = "0" if reason.place == "1" and api.startswith("__r") else reason.place
            said = _blame(inputs.get(place, inputs.get("other" if place == "1" else "input")), reason)
            if said:
                return said
    return _of_rows(inputs, api) or _of_labels(inputs, api) or _of_size(inputs, call, api)


def _blame(value: Any, reason: Reason) -> Sentence:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return say(reason.key) if reason.holds(np.float64(value)) else NOTHING
    if not isinstance(value, Tensor):
        return NOTHING
    array = _array(value)
    if array is None:
        low, high = value.min, value.max
        ends = [item for item in (low, high) if isinstance(item, (int, float))]
        if len(ends) == 2 and reason.by_ends(float(ends[0]), float(ends[1])):
            return say("why.by_ends", what=say(reason.key), place=value.place, low=float(ends[0]), high=float(ends[1]))
        return NOTHING
    return _counted(say(reason.key), reason.holds(array))


def _counted(what: Sentence, found: Any) -> Sentence:
    """Return a reason with the number of the elements that have it, and the first index."""
    count = int(np.count_nonzero(found))
    if not count:
        return NOTHING
    places = [int(place) for place in np.unravel_index(int(np.argmax(found)), found.shape)]
    return say("why.elements", what=what, count=count, all=int(found.size), index=say("why.index", places=places))


def _of_rows(inputs: dict[str, Any], api: str) -> Sentence:
    """Return that a row holds nothing but -Inf: a softmax of it is Inf - Inf."""
    given = inputs.get("0", inputs.get("input"))
    array = _array(given) if _ROWS.match(api) and isinstance(given, Tensor) else None
    if array is None or array.ndim < 1:
        return NOTHING
    if "sub" in api:
        other = inputs.get("1")
        second = _array(other) if isinstance(other, Tensor) else None
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
    is_large = any(abs(end) > 60 for item in tensors for end in (item.max, item.min) if isinstance(end, (int, float)))
    if made is not None and made.dtype == "Float16" and is_large:
        return say("why.overflow", dtype=made.dtype, largest=65504.0)
    return NOTHING


def _array(tensor: Tensor) -> Any:
    """Return the array of a tensor; None where it has none, or one that is a part or too large."""
    try:
        if tensor.path is None or np.prod(tensor.shape or [1]) > _MOST:
            return None
        array = tensor.array()
    except UsageError:
        return None
    return array.astype(np.float64) if list(array.shape) == list(tensor.shape or []) else None

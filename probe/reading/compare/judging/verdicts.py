# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The verdicts on a tensor, and the place of a call that has one."""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

from probe.reading.compare.distances.bounds import Distance
from probe.reading.dumps.values import is_tensor, plain

#: verdicts on a tensor
BITS, NUMBERS_EQUAL, CLOSE, DIFFERS, UNKNOWN_VALUE, ONE_SIDE, SHAPE, OTHER_BITS, NEAR_ZERO, NOT_COMBINED = (
    "same", "equal numbers", "close", "differs", "unknown", "one side", "shape", "other bits", "near zero",
    "not combined",
)  # fmt: skip
#: the verdict where one side divides the batch, and the gradients that enter the optimizer agree
OTHER_BATCH = "other batch"
HARD = frozenset((DIFFERS, ONE_SIDE, SHAPE))
#: differences within the tolerance
FAINT = frozenset((CLOSE, OTHER_BITS, NEAR_ZERO))
#: the verdict on a weight that is the transpose of the other framework's
TRANSPOSED = "transposed"
#: parameters that the forward changes: they are recorded after it, as outputs are
_STATE = re.compile(r"(^|\.)(moving|running)_(mean|var(iance)?)$")


class Slot(NamedTuple):
    """One place of a call in A and in B."""

    place: str  # where: "input.0", "output.1"
    is_input: bool  # whether the call was given it
    a: Any  # the value in A: a record, a plain value, or None
    b: Any  # the value in B
    distance: Distance
    #: "same" (bits), "equal numbers", "other bits" (equal numbers, another CRC-32), "close", "near zero" (both are the
    #: rounding of a sum that is zero), "differs", "shape", "one side", "unknown", "not combined" (the ranks of a layout
    #: do not tell the whole) or "other batch"; "" for plain values that are equal, "argument" for others. Of two
    #: frameworks also "transposed"
    verdict: str


def sharpened(slots: list[Slot]) -> list[Slot]:
    """Return the places of a call as they are judged if every difference counts."""
    return [slot._replace(verdict=DIFFERS) if slot.verdict in FAINT else slot for slot in slots]


def is_permuted(slot: Slot) -> bool:
    """Return whether two tensors have other bits, but the same greatest and least element: perhaps other places."""
    return slot.verdict == OTHER_BITS and all(slot.a.get(key) == slot.b.get(key) for key in ("Max", "Min"))


@functools.lru_cache(4096)
def is_state(name: str) -> bool:
    """Return whether a parameter is one that the forward changes.

    >>> is_state("parameters.moving_mean"), is_state("gamma")
    (True, False)
    """
    return _STATE.search(name) is not None


def other_text(slot: Slot) -> tuple[str, str]:
    """Return the two values of a place that holds no two tensors, as texts: numbers with the digits that matter."""
    values = plain(slot.a), plain(slot.b)
    if all(type(value) in (int, float) for value in values):
        short = f"{values[0]:.6g}", f"{values[1]:.6g}"
        if short[0] != short[1]:
            return short
    return _text(slot.a), _text(slot.b)


def _text(value: Any) -> str:
    if is_tensor(value):
        return f"{value.get('dtype')} {value.get('shape')}"
    text = repr(plain(value))
    return text if len(text) <= 60 else text[:57] + "..."

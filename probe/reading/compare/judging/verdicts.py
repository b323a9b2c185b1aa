# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The verdicts on a tensor, and the place of a call that has one."""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

from probe.reading.compare.distances.distance import Distance
from probe.reading.dumps.values import is_tensor, plain

#: parameters that the forward changes: they are recorded after it, as outputs are
_STATE = re.compile(r"(^|\.)(moving|running)_(mean|var(iance)?)$")


class Verdict:
    """The verdicts on a tensor. Plain values that are equal have none: ""."""

    BITS = "same"
    NUMBERS_EQUAL = "equal numbers"
    OTHER_BITS = "other bits"  # equal numbers or within the tolerance, another CRC-32
    CLOSE = "close"
    NEAR_ZERO = "near zero"  # both are the rounding of a sum that is zero
    DIFFERS = "differs"
    SHAPE = "shape"
    ONE_SIDE = "one side"
    UNKNOWN = "unknown"
    NOT_COMBINED = "not combined"  # the ranks of a layout do not tell the whole
    OTHER_BATCH = "other batch"  # one side divides the batch, and the gradients that enter the optimizer agree
    TRANSPOSED = "transposed"  # a weight is the transpose of the other framework's
    ARGUMENT = "argument"  # two plain values are not equal


HARD = frozenset((Verdict.DIFFERS, Verdict.ONE_SIDE, Verdict.SHAPE))
EQUAL = frozenset((Verdict.BITS, Verdict.NUMBERS_EQUAL))
#: differences within the tolerance
FAINT = frozenset((Verdict.CLOSE, Verdict.OTHER_BITS, Verdict.NEAR_ZERO))


class Slot(NamedTuple):
    """One place of a call in A and in B."""

    place: str  # where: "input.0", "output.1"
    is_input: bool  # whether the call was given it
    a: Any  # the value in A: a record, a plain value, or None
    b: Any  # the value in B
    distance: Distance
    verdict: str  # a ``Verdict``

    @property
    def are_tensors(self) -> bool:
        """Whether both values are tensors."""
        return is_tensor(self.a) and is_tensor(self.b)

    @property
    def is_hard(self) -> bool:
        """Whether the values differ beyond the tolerance."""
        return self.verdict in HARD

    @property
    def is_faint(self) -> bool:
        """Whether the values differ within the tolerance."""
        return self.verdict in FAINT


def sharpened(slots: list[Slot]) -> list[Slot]:
    """Return the places of a call as they are judged if every difference counts."""
    return [slot._replace(verdict=Verdict.DIFFERS) if slot.is_faint else slot for slot in slots]


def is_permuted(slot: Slot) -> bool:
    """Return whether two tensors have other bits, but the same greatest and least element: perhaps other places."""
    if slot.verdict != Verdict.OTHER_BITS:
        return False
    return all(slot.a.get(key) == slot.b.get(key) for key in ("Max", "Min"))


@functools.lru_cache(4096)
def is_state(name: str) -> bool:
    """Return whether a parameter is one that the forward changes.

    >>> is_state("parameters.moving_mean"), is_state("gamma")
    (True, False)
    """
    return _STATE.search(name) is not None


def other_text(slot: Slot) -> tuple[str, str]:
    """Return the two values of a place that holds no two tensors, as texts: numbers with the digits that matter."""
    value_a = plain(slot.a)
    value_b = plain(slot.b)
    if type(value_a) in (int, float) and type(value_b) in (int, float):
        short_a = f"{value_a:.6g}"
        short_b = f"{value_b:.6g}"
        if short_a != short_b:
            return short_a, short_b
    return _text(slot.a), _text(slot.b)


def _text(value: Any) -> str:
    if is_tensor(value):
        return f"{value.get('dtype')} {value.get('shape')}"
    text = repr(plain(value))
    return text if len(text) <= 60 else text[:57] + "..."

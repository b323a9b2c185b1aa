# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tells of two texts of one entry whether they agree by the rules of ``probe compare``.

A test of the numbers is enough for nearly all of them: where all but the numbers is equal, and each distance is within
the tolerance of its dtype, ``probe compare`` sees no difference either. The others are judged as it judges them.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from probe.reading.compare.distances.tolerance import Tolerances, distance, of_dtype
from probe.reading.compare.judging.judge import Judge
from probe.reading.compare.judging.verdicts import HARD, Slot
from probe.reading.dumps.entry_name import parse
from probe.reading.dumps.values import is_tensor

#: the numbers of a record; each stands on a line of its own
_NUMBERS = re.compile(r'"Max": (.*),\n *"Min": (.*),\n *"Mean": (.*),\n *"Norm": ([^,\n]*)(?:,\n *"md5": "(\w*)")?')
#: the numbers of one record, and the text before the next one
_STRIDE = 6
#: dtype and shape, which stand before the numbers
_FORM = re.compile(r'"dtype": "([^"]*)",\s+"shape": (\[[^\]]*\]),\s+$')
#: pairs of tensors that are remembered: an output is the input of the next calls
_REMEMBERED = 4096


class Agreement:
    """Compares the entries of one step with those of the golden run, in the order in which the calls ran."""

    def __init__(self) -> None:
        self._near: set[tuple[Any, ...]] = set()  # the numbers of pairs that are within the tolerance
        self._tolerances = Tolerances()
        self._judge = Judge(self._tolerances)  # it follows the rounding from call to call

    def holds(self, name: str, golden: str, own: str) -> bool:
        """Return whether nothing in an entry can be a difference, nor a change of the calls."""
        if golden == own or self._is_near(golden, own):
            return True
        return not is_part(own, golden) and self._is_judged_equal(name, golden, own)

    def _is_near(self, golden: str, own: str) -> bool:
        """Return whether two entries are equal but for numbers within the tolerance: sure, and quick."""
        left, right = _NUMBERS.split(golden), _NUMBERS.split(own)
        if left[::_STRIDE] != right[::_STRIDE]:
            return False
        near = self._near
        for place in range(1, len(left), _STRIDE):
            numbers = left[place : place + 4], right[place : place + 4]
            if numbers[0] == numbers[1]:
                continue
            form = _form(left[place - 1])
            if form is None:
                return False
            key = (*numbers[0], *numbers[1], form[0])
            if key not in near:
                if not _are_near(form, *numbers):
                    return False
                if len(near) >= _REMEMBERED:
                    near.clear()
                near.add(key)
        return True

    def _is_judged_equal(self, name: str, golden: str, own: str) -> bool:
        """Return the same by the verdicts of ``probe compare``."""
        a, b, parts = json.loads(golden), json.loads(own), parse(name)
        # a judge of its own: it remembers pairs of records by their addresses, and these two go
        slots = Judge(self._tolerances).slots(name, parts, a, b)
        return not any(map(_is_change, self._judge.follow(name, parts, slots)))


def is_part(own: str, golden: str) -> bool:
    """Return whether an entry lacks keys of another one, and has no others.

    >>> is_part('{"input": []}', '{"input": [], "output": []}'), is_part("{}", "{}")
    (True, False)
    """
    return set(json.loads(own)) < set(json.loads(golden))


def _is_change(slot: Slot) -> bool:
    if slot.verdict in HARD or slot.verdict == "argument":
        return True
    both = is_tensor(slot.a) and is_tensor(slot.b)
    return both and any(slot.a.get(key) != slot.b.get(key) for key in ("dtype", "shape"))


def _are_near(form: tuple[float, list[int]], left: list[str], right: list[str]) -> bool:
    """Return whether the distance of two tensors is within the tolerance of their dtype; they have one form."""
    try:
        found = distance(_record(form[1], left), _record(form[1], right)).rel_l2
    except ValueError:  # null
        return False
    return found is not None and found <= form[0]


def _record(shape: list[int], numbers: list[str]) -> dict[str, Any]:
    high, low, mean, norm = map(float, numbers)
    return {"shape": shape, "Max": high, "Min": low, "Mean": mean, "Norm": norm}


@functools.lru_cache(4096)
def _form(before: str) -> tuple[float, list[int]] | None:
    """Return the tolerance and the shape of a record by the text before its numbers; None where it has none."""
    found = _FORM.search(before)
    tolerance = of_dtype(found[1]) if found else 0.0
    return (tolerance, json.loads(found[2])) if found and tolerance else None

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tells which of two dumps is looked at first, by what is in them: never by which of them is A.

The search for pairs breaks ties by the side from which it begins. So that both orders of a comparison find the same
pairs, it begins from the same dump in both.
"""

from __future__ import annotations

from probe.reading.dumps.dump import Dump


def comes_first(one: Dump, other: Dump) -> bool:
    """Return whether the first of two dumps comes before the other: it has fewer calls, or the lesser names or values.

    Dumps of equal names differ in the first entry that is not equal; equal dumps need no order.
    """
    names = list(one.data)
    others = list(other.data)
    if len(names) != len(others):
        return len(names) < len(others)
    if names != others:
        return names < others
    for name in names:
        entry = one.data[name]
        other_entry = other.data[name]
        if entry == other_entry:
            continue
        text = repr(entry)
        other_text = repr(other_entry)
        if text != other_text:  # NaN is not equal to itself, and has one text
            return text < other_text
    return False

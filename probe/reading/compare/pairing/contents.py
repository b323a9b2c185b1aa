# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The content of calls: their inputs and outputs, as far as a pairing looks at them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from probe.reading.dumps.flow import Flow, content_key
from probe.reading.dumps.values import element_count, is_tensor, leaves, plain, real


def equal_calls(
    flows: tuple[Flow, Flow], entry: Callable[[int, int], Any], places: tuple[list[int], list[int]]
) -> list[tuple[int, int]]:
    """Return calls of one API with equal inputs, in whichever order they stand; the k-th of several is the k-th."""
    found: list[dict[Hashable, list[int]]] = [{}, {}]
    for side, own in enumerate(places):
        flow = flows[side]
        for number, place in enumerate(own):
            made = entry(side, place)
            given = leaves(made.get("input_args")) if isinstance(made, dict) else []
            contents = tuple((key, _content(leaf)) for key, leaf in given)
            if any(content is not None for _, content in contents):
                found[side].setdefault((flow.parts[place].api, contents), []).append(number)
    return sorted(
        pair
        for key, numbers in found[0].items()
        if len(numbers) == len(found[1].get(key, ()))
        for pair in zip(numbers, found[1][key])
    )


def _content(leaf: Any) -> Hashable:
    return (content_key(leaf), shape_of(leaf)) if is_tensor(leaf) else repr(plain(leaf))


def first_output(entry: Any) -> Any:
    """Return the record of the first tensor that a call gives; None where it gives none."""
    found = leaves(entry.get("output")) if isinstance(entry, dict) else []
    return next((leaf for _, leaf in found if is_tensor(leaf)), None)


def first_numbers(entry: dict[str, Any]) -> tuple[str, ...]:
    """Return the numbers of the first output, so rounded that two frameworks agree; () where they tell nothing."""
    record = first_output(entry) or {}
    numbers = [real(record.get(key)) for key in ("Norm", "Max", "Min")]
    return () if None in numbers or not numbers[0] else tuple(f"{number:.2e}" for number in numbers)


def shape_of(record: Any) -> tuple[int, ...] | None:
    """Return the shape of a record; None where it has none."""
    shape = record.get("shape")
    return tuple(shape) if element_count(shape) is not None else None

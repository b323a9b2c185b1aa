# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tells calls apart by their content: the tensors and arguments that they were given, and their outputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from probe.reading.compare.pairing.sequence import Pairs
from probe.reading.dumps.flow import Flow, content_key
from probe.reading.dumps.values import (
    Leaf,
    element_count,
    grouped,
    is_tensor,
    leaves,
    plain,
    real,
    tensors_in,
)

#: the numbers of an output that two frameworks share
_NUMBERS = ("Norm", "Max", "Min")
#: a side and a place -> the entry
Entry = Callable[[int, int], Any]


def equal_calls(
    flows: tuple[Flow, Flow], entry: Entry, places_a: Iterable[int], places_b: Iterable[int]
) -> Pairs:
    """Return calls of one API with equal inputs, in whichever order they stand; the k-th of several is the k-th."""
    flow_a, flow_b = flows
    calls_a = grouped((_api_and_inputs(flow_a, a, entry(0, a)), a) for a in places_a)
    calls_b = grouped((_api_and_inputs(flow_b, b, entry(1, b)), b) for b in places_b)
    calls_a.pop(None, None)
    pairs: Pairs = []
    for key, own in calls_a.items():
        others = calls_b.get(key, [])
        if len(own) == len(others):
            pairs += zip(own, others)
    return sorted(pairs)


def _api_and_inputs(flow: Flow, place: int, entry: Any) -> Hashable:
    """Return the API of a call and the content of its arguments; None where it has none."""
    contents = tuple((key, _content(leaf)) for key, leaf in _arguments(entry))
    api = flow.parts[place].api
    return (api, contents) if contents else None


def _arguments(entry: Any) -> list[Leaf]:
    """Return the arguments of a call, those by place before those by name."""
    if not isinstance(entry, dict):
        return []
    given = leaves(entry.get("input_args"))
    named = entry.get("input_kwargs")
    return [*given, *leaves(named)] if named else given


def _content(leaf: Any) -> Hashable:
    if is_tensor(leaf):
        return content_key(leaf), shape_of(leaf)
    return repr(plain(leaf))


def plain_arguments(entry: Any) -> tuple[str, ...]:
    """Return the arguments of a call that are no tensors, as texts."""
    texts: list[str] = []
    for _, leaf in _arguments(entry):
        if leaf is not None and not is_tensor(leaf):
            texts.append(repr(plain(leaf)))
    return tuple(texts)


def shapes_of_inputs(entry: Any) -> tuple[tuple[int, ...] | None, ...]:
    """Return the shapes of the tensors that a call is given, by place or by name."""
    return tuple(shape_of(leaf) for _, leaf in _arguments(entry) if is_tensor(leaf))


def first_output(entry: Any) -> Any:
    """Return the record of the first tensor that a call gives; None where it gives none."""
    return next(iter(tensors_in(entry, "output")), None)


def first_numbers(entry: dict[str, Any]) -> tuple[str, ...]:
    """Return the numbers of the first output, so rounded that two frameworks agree; () where they tell nothing."""
    record = first_output(entry) or {}
    numbers = [real(record.get(key)) for key in _NUMBERS]
    if None in numbers or not numbers[0]:
        return ()
    return tuple(f"{number:.2e}" for number in numbers)


def shape_of(record: Any) -> tuple[int, ...] | None:
    """Return the shape of a record; None where it has none."""
    shape = record.get("shape")
    return tuple(shape) if element_count(shape) is not None else None

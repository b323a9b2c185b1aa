# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Updates of optimizers in a dump: the entry's gradients by their parameters, and its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from probe.reading.dumps.entry_name import CELL, FORWARD, EntryName
from probe.reading.dumps.values import count_of, is_tensor, part_of, plain, real

#: how places begin that hold a gradient, a result, a number, a state
GRADIENTS = "input.0."
RESULTS = "output.0."
NUMBERS = "kwargs."
STATES = "parameters."
UNREAD = "unread"  # the key of the reasons why numbers could not be read


def is_update(parts: EntryName, entry: Any) -> bool:
    """Return whether an entry is the update of an optimizer: it names the parameters that it updates.

    >>> from probe.reading.dumps.entry_name import parse
    >>> name = {"type": "str", "value": "fc.weight"}
    >>> is_update(parse("Cell.optimizer.Adam.forward.0"), {"input_kwargs": {"parameters": [name]}})
    True
    """
    return parts.kind == CELL and parts.direction == FORWARD and bool(parameter_names(entry))


def parameter_names(entry: Any) -> list[str]:
    """Return the names of the parameters in the order of the gradients; [] where this is no update."""
    names = _given(entry).get("parameters")
    if type(names) is not list:
        return []
    found = [plain(name) for name in names]
    return found if all(type(name) is str for name in found) else []


def _given(entry: Any) -> dict[str, Any]:
    """Return the keyword arguments of an entry; {} where it has none."""
    given = part_of(entry, "input_kwargs")
    return given if type(given) is dict else {}


def gradients(entry: Any) -> list[Any]:
    """Return the records of the gradients that entered an update."""
    given = part_of(entry, "input_args")
    first = given[0] if type(given) is list and given else None
    if type(first) is dict:
        return list(first.values())
    return first if type(first) is list else []


def global_norm(entry: Any) -> float | None:
    """Return the norm of all gradients that entered an update; None where one is not known."""
    records = filter(is_tensor, gradients(entry))
    norms = [real(record.get("Norm")) for record in records]
    if not norms or None in norms:
        return None
    return math.sqrt(sum(norm * norm for norm in norms if norm is not None))


def number(value: Any) -> float | None:
    """Return a number of an update; a device's number is the record of a tensor of one element.

    >>> number({"type": "float", "value": 0.1}), number({"type": "str", "value": "a"}), number(None)
    (0.1, None, None)
    """
    if not is_tensor(value):
        return real(plain(value))
    has_one = count_of(value) == 1
    return real(value.get("Max")) if has_one else None


def groups(entry: Any) -> list[tuple[dict[str, float], list[str]]]:
    """Return for each group of an update its numbers, and its parameters; an update without groups is one group."""
    names = parameter_names(entry)
    given = _given(entry) if names else {}
    common = _numbers(given)
    own = given.get("groups")
    if type(own) is not list or not own:
        return [(common, names)]
    found: list[tuple[dict[str, float], list[str]]] = []
    for group in own:
        if type(group) is dict:
            numbers = {**common, **_numbers(group)}
            found.append((numbers, parameter_names({"input_kwargs": group})))
    return found


def _numbers(given: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of a group. A state of one element, such as "moment1.fc.bias", is no setting."""
    found = ((key, number(value)) for key, value in given.items() if "." not in key)
    return {key: value for key, value in found if value is not None}


class Unread(NamedTuple):
    """A number of an update that could not be read."""

    number: str  # its name
    group: int  # the group, counted from 1; 0 where there is one
    reason: str


def unread(entry: Any) -> Iterator[Unread]:
    """Yield the numbers of an update that could not be read, with the reasons."""
    if not parameter_names(entry):
        return
    given = _given(entry)
    own = given.get("groups")
    several = [given, *(own if type(own) is list else [])]
    for place, numbers in enumerate(several):
        reasons = numbers.get(UNREAD) if type(numbers) is dict else None
        if type(reasons) is not dict:
            continue
        for name, reason in reasons.items():
            yield Unread(str(name), place, str(plain(reason)))


def by_parameter(entry: Any) -> dict[str, dict[str, float]]:
    """Return number -> parameter -> value."""
    found: dict[str, dict[str, float]] = {}
    for numbers, names in groups(entry):
        for key, value in numbers.items():
            found.setdefault(key, {}).update(dict.fromkeys(names, value))
    return found


def series(name: str, entry: Any) -> Iterator[tuple[str, float]]:
    """Yield what lines over the steps show of an update: its learning rates, and the norm of all gradients."""
    known = [numbers.get("learning_rate") for numbers, _ in groups(entry)]
    rates = [rate for rate in dict.fromkeys(known) if rate is not None]
    for place, rate in enumerate(rates):
        number_of_rate = f".{place}" if len(rates) > 1 else ""
        yield f"{name}.learning_rate{number_of_rate}", rate
    norm = global_norm(entry)
    if norm is not None:
        yield f"{name}.global_norm", norm

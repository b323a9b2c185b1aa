# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The optimizers of two runs: their kinds, numbers, parameters, and the updates that both have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.check.difference import (
    Difference,
    Importance,
    both,
    json_fact,
    listed,
    named,
    only,
    other_keys,
    pair,
)
from probe.reading.check.snapshot import RunSnapshot, flat, mapping
from probe.reading.dumps.updates import UNREAD


def check_optimizers(
    a: RunSnapshot, b: RunSnapshot, renamed: Mapping[str, str]
) -> Iterator[Difference]:
    """Yield how the optimizers differ, in the order of their updates; ``renamed``: name in A -> another one in B."""
    if not a.optimizers or not b.optimizers:
        for side, mine in (("A", a.optimizers), ("B", b.optimizers)):
            kinds = [_kind(name) for name in mine]
            if kinds:
                yield _difference(only(kinds, side))
        return
    if len(a.optimizers) != len(b.optimizers):
        counts = both(len(a.optimizers), len(b.optimizers))
        yield Difference(Importance.OPTIMIZER, say("check.optimizers"), counts)
    for (name, x), (other, y) in zip(a.optimizers.items(), b.optimizers.items()):
        kind = _kind(name)
        if kind != _kind(other):
            yield _difference(pair(kind, _kind(other)))
        yield from _numbers(kind, x, y)
        yield from _parameters(kind, x, y, renamed)


def _kind(name: str) -> str:
    return name.rpartition(".")[2]


def _difference(said: Sentence) -> Difference:
    return Difference(Importance.OPTIMIZER, say("check.optimizer"), said)


def _difference_of_one(kind: str, said: Sentence) -> Difference:
    return Difference(Importance.OPTIMIZER, say("check.one_optimizer", kind=kind), said)


def _numbers(kind: str, x: dict[str, Any], y: dict[str, Any]) -> Iterator[Difference]:
    """Yield which numbers of one optimizer differ; all of them in one line."""
    left = _readings(x)
    right = _readings(y)
    values = []
    for key in other_keys(left, right):
        readings = both(_reading(left, key), _reading(right, key))
        values.append(named(key, readings))
    if values:
        yield _difference_of_one(kind, say("check.values", values=listed(values, 4)))


def _readings(item: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of an optimizer by their places; of one that could not be read the reason, as a sentence."""
    read = {}
    unread = {}
    for key, value in flat(item).items():
        place = f".{key}"
        if ".parameters" in place:
            continue
        if f".{UNREAD}." in place:
            own = place.replace(f".{UNREAD}.", ".", 1)
            unread[own[1:]] = say("check.no_number", reason=str(value))
        else:
            read[key] = value
    return {**read, **unread}


def _reading(numbers: Mapping[str, Any], key: str) -> Any:
    reading = numbers.get(key)
    return reading if isinstance(reading, Sentence) else json_fact(reading)


def _parameters(
    kind: str, x: dict[str, Any], y: dict[str, Any], renamed: Mapping[str, str]
) -> Iterator[Difference]:
    """Yield which parameters only one of two optimizers updates, or another order of them."""
    names_a = [renamed.get(name, name) for name in _parameter_names(x)]
    names_b = _parameter_names(y)
    for side, mine, theirs in (("A", names_a, names_b), ("B", names_b, names_a)):
        alone = [name for name in dict.fromkeys(mine) if name not in theirs]
        if alone:
            yield _difference_of_one(kind, say("check.updates", only=only(alone, side)))
    if names_a != names_b and sorted(names_a) == sorted(names_b):
        key = "check.other_groups" if _groups(x) else "check.parameters_moved"
        yield _difference_of_one(kind, say(key))


def _parameter_names(item: dict[str, Any]) -> list[str]:
    """Return the parameters of an optimizer, then those of its groups."""
    holders = [item, *_groups(item)]
    return [str(name) for holder in holders for name in holder.get("parameters") or ()]


def _groups(item: dict[str, Any]) -> list[dict[str, Any]]:
    return [mapping(group) for group in item.get("groups") or ()]


def same_update(a: RunSnapshot, b: RunSnapshot) -> Sentence:
    """Return which steps have the same update of a training, if one run goes on from a checkpoint of the other.

    MindSpore's optimizers count their updates in ``global_step``. A step is taken for one update.
    """
    for (name, x), (other, y) in zip(a.optimizers.items(), b.optimizers.items()):
        count_a: Any = x.get("global_step")
        count_b: Any = y.get("global_step")
        first_a: Any = a.first_updates.get(name)
        first_b: Any = b.first_updates.get(other)
        kinds = {type(number) for number in (count_a, count_b, first_a, first_b)}
        if kinds != {int} or count_a == count_b:
            continue
        later = count_b - count_a
        step_a = first_a + max(later, 0)
        step_b = first_b + max(-later, 0)
        if step_a in a.inputs and step_b in b.inputs:
            number = max(count_a, count_b)
            return say("check.same_update", number=number, step=step_a, other=step_b)
    return NOTHING

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The numbers that an optimizer computes itself during an update: they are exact, and win over those from before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from probe.capture.training.optimizer_values import (
    GROUPS,
    PARAMETERS,
    UNREAD,
    Numbers,
    OptimizerValues,
    ReadNumber,
)
from probe.capture.training.schedules import NoNumber
from probe.measure.tensor_reader import element_count


class ComputedNumbers:
    """The numbers of one update: those from before it, and those that the optimizer computes in it."""

    def __init__(self, values: OptimizerValues) -> None:
        self._values = values
        self._computed: dict[str, Any] = {}  # the results of its methods
        self._groups: list[list[str]] = []  # the parameters of each group, before and after
        self._owners: list[
            int
        ] = []  # for each group after the update: its place among those from before, or -1

    def __bool__(self) -> bool:
        return bool(self._computed)

    def note(self, name: str, value: Any, is_held: bool) -> None:
        """Note a number that the optimizer has computed; one that it only holds is known from before.

        The last one counts: a method may call that of its base.
        """
        self._computed.pop(name, None)
        if not is_held:
            self._computed[name] = value

    def before(self, read: ReadNumber) -> Numbers:
        """Return the numbers before the update; see ``OptimizerValues.scalars``."""
        numbers = self._values.scalars(read)
        self._groups = [list(group[PARAMETERS]) for group in numbers.get(GROUPS, ())]
        return numbers

    def after(self, read: ReadNumber) -> Numbers:
        """Return the computed numbers alone: of the whole optimizer, and of its groups."""
        names = list(self._values.parameters)
        several = {
            name: value for name, value in self._computed.items() if _is_for_each(value, len(names))
        }
        found: Numbers = {}
        for name, value in self._computed.items():
            if name not in several:
                self._keep(found, name, value, read)
        self._owners = list(range(len(self._groups)))
        if not several:
            return found
        places = {name: place for place, group in enumerate(self._groups) for name in group}
        held = dict(self._values.columns())
        parts: dict[Any, list[str]] = {}  # parameters whose numbers are one
        for place, name in enumerate(names):
            items = (
                id(held[number][place]) if self._is_of_items(number, held) else name
                for number in several
            )
            parts.setdefault((places.get(name, -1), *items), []).append(name)
        merged: dict[Any, Numbers] = {}
        for key, group in parts.items():
            numbers = self._group(several, group, names.index(group[0]), read)
            known = [numbers[number] for number in several]
            is_plain = all(isinstance(number, (bool, int, float)) for number in known)
            kind = (key[0], *(known if is_plain else key))
            if kind in merged:
                merged[kind][PARAMETERS] += group
            else:
                merged[kind] = numbers
        found[GROUPS] = list(merged.values())
        self._owners = [kind[0] for kind in merged]
        return found

    def _is_of_items(self, number: str, held: Mapping[str, Sequence[Any]]) -> bool:
        """Return whether MindSpore's method has made the number from the items that the optimizer holds."""
        return number in held and not self._values.has_own_method(number)

    def _group(
        self, several: Mapping[str, Any], group: list[str], place: int, read: ReadNumber
    ) -> Numbers:
        found: Numbers = {}
        for name, value in several.items():
            self._keep(found, name, value[place], read)
        return {**found, PARAMETERS: group}

    def _keep(self, found: Numbers, name: str, value: Any, read: ReadNumber) -> None:
        self._values.keep(found, name, lambda: _number(value, read))

    def merged(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entry's numbers: those from before, with the computed ones in their places."""
        alone = {name: value for name, value in after.items() if name not in (GROUPS, UNREAD)}
        changed = after.get(GROUPS)
        own = before.get(GROUPS) or []
        names = {
            *alone,
            *(
                name
                for group in changed or ()
                for name in group
                if name not in (PARAMETERS, UNREAD)
            ),
        }
        rest = {
            name: value for name, value in _without_reasons(before, names).items() if name != GROUPS
        }
        in_groups = {name for name in alone if any(name in group for group in own)}
        found = {name: value for name, value in rest.items() if name not in names or name in alone}
        found.update((name, value) for name, value in alone.items() if name not in in_groups)
        groups = [
            {**_without_reasons(group, names), **{name: alone[name] for name in in_groups}}
            for group in own
        ]
        if changed is not None:
            owners = self._owners or [-1] * len(changed)
            groups = [
                {**(groups[owner] if owner >= 0 else {}), **group}
                for owner, group in zip(owners, changed)
            ]
        if len(groups) == 1:
            found.update((name, value) for name, value in groups[0].items() if name != PARAMETERS)
        elif groups:
            found[GROUPS] = groups
        names_of_all = found.pop(PARAMETERS, None)
        return {**found, **({} if names_of_all is None else {PARAMETERS: names_of_all})}


def _is_for_each(value: Any, count: int) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == count


def _number(value: Any, read: ReadNumber) -> Any:
    from mindspore import Tensor

    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Tensor) and element_count(value) == 1:
        return read(value)
    raise NoNumber(f"it is an object of the class {type(value).__name__}")


def _without_reasons(numbers: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """Return numbers without the reasons of those that are known now."""
    found = dict(numbers)
    reasons = {
        name: reason
        for name, reason in (found.pop(UNREAD, None) or {}).items()
        if name not in names
    }
    return {**found, **({UNREAD: reasons} if reasons else {})}

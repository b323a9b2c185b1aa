# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Statistics of the user's own, by the names that the setting ``summary_mode`` then takes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from probe.config.messages import shorten
from probe.door import function_of
from probe.errors import UsageError

#: other keys of a record, and of a row about it
_KEYS = (
    "type dtype shape max min mean norm inf_count data_name stride storage_offset storage micro layout unwritten "
    "unread step rank cell tensor raised line stack"
)


class OwnStatistic(NamedTuple):
    """One statistic of the user's own."""

    name: str
    function: Callable[[Any], Any]  # an array -> a number
    device: Callable[[Any], Any] | None  # a tensor -> a tensor of one element, or a number


class OwnStatistics:
    """The statistics that were registered in this process, in their order; iterating gives their names."""

    def __init__(self) -> None:
        self._known: dict[str, OwnStatistic] = {}
        self._failed: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __getitem__(self, name: str) -> OwnStatistic:
        return self._known[name]

    def add(self, name: Any, function: Any, device: Any, taken: Callable[[str], bool]) -> None:
        """Add one; ``function`` may be a text "module:function", which is imported when it is first called.

        Raise UsageError for a name that is no identifier or is ``taken``, and for what is no function.
        """
        is_name = isinstance(name, str) and name.isidentifier()
        if not is_name or name in self._known or name.lower() in _KEYS.split() or taken(name):
            told = (
                "is taken. Allowed: another one." if is_name else "is not allowed. Allowed: a text such as 'kurtosis'."
            )
            raise UsageError(f"register_statistic(): name {shorten(name)} {told}")
        if isinstance(function, str):
            function = _Imported(function)
        for key, value in (("function", function), ("device", device)):
            if not callable(value) and (key == "function" or value is not None):
                raise UsageError(f"register_statistic(): {key} is {shorten(value)}. Allowed: a function.")
        self._known[name] = OwnStatistic(name, function, device)

    def is_first_failure(self, name: str) -> bool:
        """Note that a statistic has failed; return whether nobody has been told so."""
        is_first = name not in self._failed
        self._failed.add(name)
        return is_first


class _Imported:
    """A function that is imported when it is first called: a program may set up its process before."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __call__(self, given: Any) -> Any:
        return function_of(self._text)(given)


@functools.cache
def own_statistics() -> OwnStatistics:
    """Return the statistics of this process, which each debugger of it can take."""
    return OwnStatistics()

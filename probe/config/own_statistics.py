# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Statistics of the user's own, by the names that the setting ``summary_mode`` then takes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from probe.door import function_of
from probe.errors import UsageError, raised_at_caller

#: the names of other statistics, series, and parts of a record or of a row about it, in small letters
_TAKEN = frozenset(
    "type dtype shape max min mean avg norm l2norm md5 hash count nan_count inf_count zero_count zero_share data_name "
    "storage stride storage_offset micro layout unwritten unread step rank cell tensor raised line stack grad grad_in "
    "param update global_norm update_ratio seconds saturated_share exponent_range smallest_magnitude".split()
)


@dataclass
class OwnStatistic:
    """One statistic: ``function`` of an array, ``device`` of a tensor, or None. Its first failure is told."""

    function: Callable[[Any], Any]
    device: Callable[[Any], Any] | None
    source: str = ""  # "module:function", where a setting has named it so
    has_failed: bool = False


@functools.cache
def own_statistics() -> dict[str, OwnStatistic]:
    """Return those that were registered in this process, which each debugger of it can take."""
    return {}


@raised_at_caller
def register_statistic(
    name: str, function: Callable[[Any], Any], device: Callable[[Any], Any] | None = None
) -> None:
    """Add a statistic of your own, for the setting ``summary_mode``: before the debugger is made.

    Args:
        name: an identifier: the key in a record, and the last part of the name of a series.
        function: takes a copy of a tensor's values as an array of numpy, floats of less than 16 bits and bfloat16 as
            float32, and returns a number. If it fails, the record has null; the first error is logged.
        device: the same of a MindSpore tensor, for numbers that are measured on the device.

    Raises:
        UsageError: for a name that is no identifier, or is taken, and for what is no function.

    Example::

        probe.register_statistic("kurtosis", lambda x: ((x - x.mean()) ** 4).mean() / x.var() ** 2)
        debugger = PrecisionDebugger(config_path="config.json")  # "summary_mode": ["max", "kurtosis"]
    """
    is_name = isinstance(name, str) and name.isidentifier()
    if not is_name or name.lower() in _TAKEN or name.endswith("_count") or name in own_statistics():
        told = (
            "is taken. Allowed: another one"
            if is_name
            else "is not allowed. Allowed: an identifier"
        )
        raise UsageError(f"register_statistic(): the name {name!r} {told}.")
    if not callable(function) or not (device is None or callable(device)):
        raise UsageError(f"register_statistic(): {name} has no function: {function!r}, {device!r}")
    own_statistics()[name] = OwnStatistic(function, device)


def registered(text: str) -> str:
    """Return the name of the function "module:function", which is imported when it is first called."""
    name = text.rpartition(":")[2].rpartition(".")[2]
    if name not in own_statistics():
        register_statistic(name, lambda given: function_of(text)(given))  # noqa: PLW0108 - imported when it is called
        own_statistics()[name].source = text
    return name

# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Values of settings: each function takes a key and a value and returns it checked, or raises the one error."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple, NoReturn

from probe.errors import SettingsError

TASKS = ("statistics", "tensor", "structure", "nan_check")
LEVELS = ("L0", "L1", "mix", "debug")
DATA_MODES = ("all", "forward", "backward", "input", "output")
SUMMARY_MODES = ("statistics", "md5")
#: a list of these may stand in place of "statistics"
STATISTICS = tuple(
    "max,min,mean,avg,l2norm,count,nan count,negative inf count,positive inf count,negative zero count,zero count,"
    "positive zero count,md5".split(",")
)
MEASURES = ("auto", "host", "device")


@dataclass(frozen=True)
class StepSelection:
    """Some steps, and every N-th.

    >>> 200 in Steps(frozenset({3}), frozenset({100}))
    True
    """

    numbers: frozenset[int]
    every: frozenset[int]

    def __contains__(self, step: int) -> bool:
        return step in self.numbers or any(step % every == 0 for every in self.every)


def refuse(key: str, value: object, allowed: str, near: str = "", spellings: Iterable[str] = ()) -> NoReturn:
    """Raise the one error, which names the key, the value, what is allowed and the nearest right spelling."""
    guess = difflib.get_close_matches(str(near), [str(s) for s in spellings], n=1, cutoff=0.5) if near else []
    hint = f" Did you mean {guess[0]!r}?" if guess and guess[0] != value else ""
    raise SettingsError(f"{key}: {value!r} is not allowed. Allowed: {allowed}.{hint}")


def choice(*allowed: str) -> Callable[[str, Any], str]:
    """Return what takes one of some words."""

    def parse(key: str, value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            refuse(key, value, ", ".join(map(repr, allowed)), str(value), allowed)
        return value

    return parse


def boolean(key: str, value: Any) -> bool:
    """Take true or false."""
    if not isinstance(value, bool):
        refuse(key, value, "true, false", str(value).lower(), ("true", "false"))
    return value


def path(key: str, value: Any) -> str:
    """Take a path, and return it as an absolute one."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str) or not value or "\0" in value:
        refuse(key, value, "a path")
    return os.path.abspath(value)


def dump_path(key: str, value: Any) -> str:
    """Return where a path really leads: the user's own links are followed, later ones are not."""
    return os.path.realpath(path(key, value))


_SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([KMGT]?)B?\s*", re.IGNORECASE)


def size(key: str, value: Any) -> int:
    """Return a number of bytes.

    >>> size("max_disk", "1.5GB")
    1500000000
    """
    match = _SIZE.fullmatch(str(value)) if isinstance(value, (str, int)) and not isinstance(value, bool) else None
    size = int(float(match[1]) * 1000 ** (" KMGT".index(match[2].upper() or " "))) if match else 0
    if size <= 0:
        refuse(key, value, 'a number of bytes, or a text like "500MB" or "200GB"')
    return size


_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")


def numbers(key: str, value: Any, further: str = "") -> frozenset[int]:
    """Take numbers from 0, texts like "3" and ranges like "4-6"; ``further`` is what else is said to be allowed."""
    allowed = f'a list of numbers from 0, texts like "3", and ranges like "4-6"{further}'
    found: set[int] = set()
    for item in value if isinstance(value, (list, tuple)) else [value]:
        match = _RANGE.fullmatch(item) if isinstance(item, str) else None
        if isinstance(item, int) and not isinstance(item, bool) and item >= 0:
            found.add(item)
        elif match and int(match[2] or match[1]) - int(match[1]) in range(1_000_000):
            found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
        else:
            refuse(key, item, allowed)
    return frozenset(found)


def count(key: str, value: Any) -> int:
    """Take a whole number from 0."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100_000:
        refuse(key, value, "a whole number from 0 to 100000")
    return value


def sample_mode(key: str, value: Any) -> int:
    """Take 0 or 1."""
    if isinstance(value, bool) or value not in (0, 1):
        refuse(key, value, "0, 1")
    return int(value)


_EVERY = re.compile(r"\s*every\s+0*([1-9]\d{0,8})\s*")


def steps(key: str, value: Any) -> frozenset[int] | StepSelection:
    """Take the same, and "every 100"."""
    items = value if isinstance(value, (list, tuple)) else [value]
    every = [_EVERY.fullmatch(item) if isinstance(item, str) else None for item in items]
    some = numbers(key, [item for item, match in zip(items, every) if match is None], ', and "every 100"')
    found = frozenset(int(match[1]) for match in every if match is not None)
    return StepSelection(some, found) if found else some


def names(key: str, value: Any) -> tuple[str, ...]:
    """Take a list of texts."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) and name for name in value):
        refuse(key, value, "a list of names")
    return tuple(value)


def patterns(key: str, value: Any) -> tuple[str, ...]:
    """Take a list of texts and of regular expressions in the form ``name-regex(…)``."""
    item = None
    try:
        for item in names(key, value):
            regex_of(item)
    except (re.error, RecursionError, OverflowError) as error:
        refuse(key, item, f"texts, and name-regex(...) with a regular expression ({error})")
    return tuple(value)


_NAME_REGEX = re.compile(r"name-regex\((.*)\)", re.DOTALL)


def regex_of(item: str) -> re.Pattern[str] | None:
    """Return the regular expression of an item of the form ``name-regex(…)``, or None for a plain text."""
    match = _NAME_REGEX.fullmatch(item)
    return re.compile(match[1]) if match else None


def summary(key: str, value: Any) -> str | tuple[str, ...]:
    """Take "statistics", "md5", or a list of statistics."""
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        if value not in SUMMARY_MODES:
            allowed = "'statistics', 'md5', or a list of " + ", ".join(map(repr, STATISTICS))
            refuse(key, value, allowed, str(value), SUMMARY_MODES)
        return str(value)
    for item in value or [value]:
        choice(*STATISTICS)(key, item)
    return tuple(value)


def modes(key: str, value: Any) -> frozenset[str]:
    """Take parts of entries; of each pair both where none is given."""
    for item in names(key, value):
        choice(*DATA_MODES)(key, item)
    modes = set(value)
    if "all" in modes and len(modes) > 1:
        refuse(key, value, "'all' alone, or some of 'forward', 'backward', 'input', 'output'")
    for pair in (DATA_MODES[1:3], DATA_MODES[3:]):
        if modes.isdisjoint(pair):
            modes.update(pair)
    return frozenset(modes - {"all"})


class ArrayCondition(NamedTuple):
    """Which arrays are written: those of which a statistic is beyond a number; without one, those not finite.

    >>> Condition("max", ">", 1e4)
    Condition(stat='max', sign='>', number=10000.0)
    """

    stat: str = ""
    sign: str = ""
    number: float = 0.0


SIGNS = (">", ">=", "<", "<=", "==", "!=")


def condition(key: str, value: Any) -> ArrayCondition:
    """Take "nonfinite", or an object with "stat" and one sign: ``{"stat": "max", ">": 1e4}``."""
    if value == "nonfinite":
        return ArrayCondition()
    allowed = '"nonfinite", or an object such as {"stat": "max", ">": 1e4}'
    if not isinstance(value, Mapping) or len(value) != 2 or "stat" not in value:
        refuse(key, value, allowed)
    stat = choice(*STATISTICS[:-1])(f"{key}.stat", value["stat"])
    (sign,) = (name for name in value if name != "stat")
    number = value[sign]
    usual = isinstance(number, (int, float)) and not isinstance(number, bool) and abs(number) < 1e300
    if sign not in SIGNS or not usual:
        refuse(key, value, f"{allowed}; the signs are {', '.join(SIGNS)}")
    return ArrayCondition(stat, sign, float(number))


class DimSlice(NamedTuple):
    """A stretch of one dimension, for tensors that are ``size`` long in it, or for all."""

    dim: int
    begin: int
    end: int | None
    size: int | None


def pieces(key: str, value: Any) -> tuple[DimSlice, ...]:
    """Take a list of ``{"dim": 0, "begin": 0, "end": 4, "size": 128}``; only ``dim`` is needed."""
    allowed = 'a list of objects such as {"dim": 0, "begin": 0, "end": 4, "size": 128}, all of them whole numbers'
    found = []
    for item in value if isinstance(value, (list, tuple)) else [value]:
        if not isinstance(item, Mapping) or not {"dim"} <= item.keys() <= {*DimSlice._fields}:
            refuse(key, item, allowed)
        numbers = [number for number in item.values() if number is not None]
        if any(isinstance(number, bool) or not isinstance(number, int) for number in numbers) or item["dim"] is None:
            refuse(key, item, allowed)
        if item["dim"] < 0 or (item.get("size") or 0) < 0:
            refuse(key, item, f"{allowed}; dim and size from 0")
        found.append(DimSlice(item["dim"], item.get("begin") or 0, item.get("end"), item.get("size")))
    return tuple(found)


def is_range(value: Any) -> bool:
    """Return whether a value is what ``start(token_range=)`` takes: two whole numbers from 0, in order."""
    whole = (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and all(isinstance(number, Integral) and not isinstance(number, bool) for number in value)
    )
    return whole and 0 <= value[0] <= value[1]

# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Validators: each takes the key and the value of a setting, and returns the checked value or raises SettingsError."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

from probe.config.messages import printable, refuse
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


#: takes the key and the value of a setting, returns the checked value
Validator = Callable[[str, Any], Any]


@dataclass(frozen=True)
class StepSelection:
    """Steps given by number, and every N-th step.

    >>> 200 in StepSelection(frozenset({3}), frozenset({100}))
    True
    """

    numbers: frozenset[int]
    every: frozenset[int]

    def __contains__(self, step: int) -> bool:
        return step in self.numbers or any(step % every == 0 for every in self.every)


def choice(*allowed: str, msprobe: Mapping[str, str] | None = None) -> Callable[[str, Any], str]:
    """Return a validator for a fixed set of strings.

    Args:
        *allowed: the strings.
        msprobe: strings that are right in msprobe but not here, each with the text for its message.
    """

    def parse(key: str, value: Any) -> str:
        if isinstance(value, str) and value in allowed:
            return value
        words = ", ".join(map(repr, allowed))
        if isinstance(value, str) and msprobe and value in msprobe:
            raise SettingsError(f"{key}: {value!r} {msprobe[value]} Allowed: {words}.")
        refuse(key, value, words, value, allowed)

    return parse


def boolean(key: str, value: Any) -> bool:
    """Validate true or false."""
    if not isinstance(value, bool):
        refuse(key, value, "true, false", value.lower() if isinstance(value, str) else None, ("true", "false"))
    return value


_VARIABLE = re.compile(r"\$(?:(\w+)|\{([^{}]*)\})", re.ASCII)


def path(key: str, value: Any) -> str:
    """Validate a path; return it absolute, with ``~`` and ``$VAR`` expanded."""
    given = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(given, str) or not given or "\0" in given:
        refuse(key, value, "a path")
    try:
        found = os.path.abspath(_expand(key, given))
        os.fsencode(found)
    except UnicodeError:
        refuse(key, value, "a path without lone surrogates and other characters that file names cannot have")
    except OSError as error:
        raise SettingsError(f"{key}: the current folder does not exist; give an absolute path") from error
    return found


def _expand(key: str, given: str) -> str:
    """Expand as the shell does: first ``~`` at the begin, then each variable once."""

    def variable(match: re.Match[str]) -> str:
        name = match[1] or match[2] or ""
        if not os.environ.get(name):
            raise SettingsError(f"{key}: the environment variable {printable(name)!r} is not set, or empty")
        return os.environ[name]

    user, slash, rest = given.partition("/") if given.startswith("~") else ("", "", given)
    home = os.path.expanduser(user)
    if user and home == user:
        raise SettingsError(f"{key}: the home folder {printable(user)!r} is unknown")
    return home + slash + _VARIABLE.sub(variable, rest)


def dump_path(key: str, value: Any) -> str:
    """Validate a path; return it with symbolic links resolved, so that later changes of a link have no effect."""
    return os.path.realpath(path(key, value))


_SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([KMGT]?)B?\s*", re.IGNORECASE)


def size(key: str, value: Any) -> int:
    """Validate a number of bytes.

    >>> size("max_disk", "1.5GB")
    1500000000
    """
    match = _SIZE.fullmatch(str(value)) if isinstance(value, (str, int)) and not isinstance(value, bool) else None
    size = int(float(match[1]) * 1000 ** (" KMGT".index(match[2].upper() or " "))) if match else 0
    if size <= 0:
        refuse(key, value, 'a number of bytes, or a text like "500MB" or "200GB"')
    return size


_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")
#: above every step, rank, dimension and index
_BEYOND = 10**15
#: most numbers that all ranges of one setting may hold
_MOST_NUMBERS = 1_000_000


def numbers(key: str, value: Any, further: str = "") -> frozenset[int]:
    """Validate ``rank``: numbers from 0, texts like "3" and ranges like "4-6"; ``further`` ends the error message."""
    allowed = f'a list of numbers from 0, texts like "3", and ranges like "4-6"{further}'
    found: set[int] = set()
    for item in value if isinstance(value, (list, tuple)) else [value]:
        match = _RANGE.fullmatch(item) if isinstance(item, str) else None
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if isinstance(item, int) and not isinstance(item, bool) and 0 <= item < _BEYOND:
            found.add(item)
        elif 0 <= last - first < _MOST_NUMBERS - len(found):
            found.update(range(first, last + 1))
        else:
            refuse(key, item, allowed if last < first else f"{allowed}, at most {_MOST_NUMBERS:,} in all")
    return frozenset(found)


def count(key: str, value: Any) -> int:
    """Validate a whole number from 0."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100_000:
        refuse(key, value, "a whole number from 0 to 100000")
    return value


def sample_mode(key: str, value: Any) -> int:
    """Validate 0 or 1."""
    if isinstance(value, bool) or value not in (0, 1):
        refuse(key, value, "0, 1")
    return int(value)


_EVERY = re.compile(r"\s*every\s+0*([1-9]\d{0,8})\s*")


def steps(key: str, value: Any) -> frozenset[int] | StepSelection:
    """Validate ``step``: numbers, ranges and "every 100"."""
    items = value if isinstance(value, (list, tuple)) else [value]
    every = [_EVERY.fullmatch(item) if isinstance(item, str) else None for item in items]
    some = numbers(key, [item for item, match in zip(items, every) if match is None], ', and "every 100"')
    found = frozenset(int(match[1]) for match in every if match is not None)
    return StepSelection(some, found) if found else some


def names(key: str, value: Any) -> tuple[str, ...]:
    """Validate a list of names."""
    if not isinstance(value, (list, tuple)):
        refuse(key, value, "a list of names")
    for item in value:
        if not isinstance(item, str):
            refuse(key, item, "a list of names. In YAML, put quotes around names such as on, no and 1.5")
        if not item or any("\ud800" <= character <= "\udfff" for character in item):
            refuse(key, item, "a list of names, none of them empty or with lone surrogates")
    return tuple(value)


#: Python compiles nested ones by recursion, under the limit of 10,000 calls that MindSpore sets
_MOST_PARENTHESES = 200


def patterns(key: str, value: Any) -> tuple[str, ...]:
    """Validate a list of texts and of regular expressions in the form ``name-regex(…)``."""
    for item in names(key, value):
        if item.count("(") > _MOST_PARENTHESES:
            refuse(key, item, f"texts, and name-regex(...), with at most {_MOST_PARENTHESES} parentheses")
        try:
            expression = regex_of(item)
        except (re.error, RecursionError, OverflowError, ValueError, MemoryError, Warning) as error:
            refuse(key, item, f"texts, and name-regex(...) with a regular expression ({printable(str(error))})")
        if expression is None and item.lstrip().startswith("name-regex"):
            refuse(key, item, "texts, and regular expressions in the form name-regex(...), both parentheses included")
    return tuple(value)


_NAME_REGEX = re.compile(r"name-regex\((.*)\)", re.DOTALL)


def regex_of(item: str) -> re.Pattern[str] | None:
    """Return the regular expression of an item of the form ``name-regex(…)``, or None for a plain text."""
    match = _NAME_REGEX.fullmatch(item)
    return re.compile(match[1]) if match else None


def summary(key: str, value: Any) -> str | tuple[str, ...]:
    """Validate ``summary_mode``: "statistics", "md5", or a list of statistics."""
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        if value not in SUMMARY_MODES:
            allowed = "'statistics', 'md5', or a list of " + ", ".join(map(repr, STATISTICS))
            refuse(key, value, allowed, value, SUMMARY_MODES)
        return str(value)
    for item in value or [value]:
        choice(*STATISTICS)(key, item)
    return tuple(value)


def modes(key: str, value: Any) -> frozenset[str]:
    """Validate ``data_mode``. A pair of which no word is given counts as both: ["forward"] has input and output."""
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
    """Write an array only if its statistic satisfies the comparison; with no statistic, only if it has NaN/Inf.

    >>> ArrayCondition("max", ">", 1e4)
    ArrayCondition(stat='max', sign='>', number=10000.0)
    """

    stat: str = ""
    sign: str = ""
    number: float = 0.0


SIGNS = (">", ">=", "<", "<=", "==", "!=")


def condition(key: str, value: Any) -> ArrayCondition:
    """Validate ``when``: "nonfinite", or an object with "stat" and one sign: ``{"stat": "max", ">": 1e4}``."""
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
    """The range of one dimension that is written; with ``size``, only of tensors with that many elements in it."""

    dim: int
    begin: int
    end: int | None
    size: int | None


def pieces(key: str, value: Any) -> tuple[DimSlice, ...]:
    """Validate ``slice``: a list of ``{"dim": 0, "begin": 0, "end": 4, "size": 128}``; only ``dim`` is needed."""
    allowed = 'a list of objects such as {"dim": 0, "begin": 0, "end": 4, "size": 128}, all of them whole numbers'
    found = []
    for item in value if isinstance(value, (list, tuple)) else [value]:
        if not isinstance(item, Mapping) or not {"dim"} <= item.keys() <= {*DimSlice._fields}:
            refuse(key, item, allowed)
        numbers = [number for number in item.values() if number is not None]
        if item["dim"] is None or not all(_is_index(number) for number in numbers):
            refuse(key, item, allowed)
        if item["dim"] < 0 or (item.get("size") or 0) < 0:
            refuse(key, item, f"{allowed}; dim and size from 0")
        found.append(DimSlice(item["dim"], item.get("begin") or 0, item.get("end"), item.get("size")))
    return tuple(found)


def _is_index(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and abs(number) < _BEYOND


def is_range(value: Any) -> bool:
    """Return whether a value fits ``start(token_range=)``: two whole numbers from 0, in order."""
    whole = (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and all(isinstance(number, Integral) and not isinstance(number, bool) for number in value)
    )
    return whole and 0 <= value[0] <= value[1]

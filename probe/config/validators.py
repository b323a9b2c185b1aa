# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Validators: each takes the key and the value of a setting, and returns the checked value or raises SettingsError."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

from probe.config.messages import printable, refuse
from probe.config.own_statistics import own_statistics, registered
from probe.errors import SettingsError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.findings.system import foreign
from probe.naming import NARROWER

#: the tasks that write the numbers of every call; then all tasks
DUMP_TASKS = ("statistics", "tensor")
TASKS = (*DUMP_TASKS, "structure", "nan_check", "monitor")
_DIRECTIONS = ("forward", "backward")
_SIDES = ("input", "output")
#: the values of data_mode in place of "all"
ALL_MODES = frozenset((*_DIRECTIONS, *_SIDES))
#: a list of these may stand in place of the summary_mode "statistics"
STATISTICS = tuple(
    "max,min,mean,avg,l2norm,count,nan count,negative inf count,positive inf count,negative zero count,zero count,"
    "positive zero count,md5".split(",")
)

#: and these, the statistics of range
RANGES = (
    "smallest magnitude",
    "exponent range",
    "zero share",
    "saturated share",
    *(
        f"{name}:{dtype}"
        for dtype in NARROWER
        for name in ("underflow", "overflow", "rounding error")
    ),
)
#: further ones of level "L2", by MindSpore's own dump
HASHES = ("hash", "hash:md5", "hash:sha1")

_LIST_OF_NAMES = say("settings.list_of_names")

#: takes the key and the value of a setting, returns the checked value
Validator = Callable[[str, Any], Any]
_Words = Iterable[str]
#: above every step, rank, dimension and index
_BEYOND = 10**15
_VARIABLE = re.compile(r"\$(\w+|\{[^}]*\})", re.ASCII)
_SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([KMGT]?)B?\s*", re.IGNORECASE)
_RANGE = re.compile(r"\s*(\d{1,15})\s*(?:-\s*(\d{1,15})\s*)?")
#: most numbers that all ranges of one setting may hold
_MOST_NUMBERS = 1_000_000
_EVERY = re.compile(r"\s*every\s+0*([1-9]\d{0,8})\s*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NAMES = say("settings.names")
#: Python compiles nested ones by recursion, under the limit of 10,000 calls that MindSpore sets
_MOST_PARENTHESES = 200
_NAME_REGEX = re.compile(r"name-regex\((.*)\)", re.DOTALL)
_CHOSEN = (*STATISTICS, *RANGES)
_LIST = say("settings.summary", names=", ".join(map(repr, _CHOSEN)))
SIGNS = (">", ">=", "<", "<=", "==", "!=")


def rule(
    accepts: Callable[[Any], bool],
    allowed: Sentence | str,
    spellings: _Words = (),
    msprobe: _Words = (),
) -> Validator:
    """Return a validator; ``accepts`` says whether a value is right.

    The message has the ``allowed`` values, and names the nearest of ``spellings``. ``msprobe`` are texts that are right
    in msprobe alone.
    """

    def check(key: str, value: Any) -> Any:
        if isinstance(value, str) and value in msprobe:
            raise SettingsError(
                say("settings.of_msprobe", key=key, value=repr(value), allowed=allowed)
            )
        if not accepts(value):
            refuse(key, value, allowed, spellings)
        return value

    return check


def choice(*allowed: str, msprobe: _Words = ()) -> Validator:
    """Return a validator for a fixed set of texts; see ``rule``."""
    words = ", ".join(map(repr, allowed))
    return rule(lambda value: isinstance(value, str) and value in allowed, words, allowed, msprobe)


def task(beside: tuple[str, ...], msprobe: _Words) -> Validator:
    """Return a validator for a task: one of ``TASKS``, or one of those beside them, which messages leave out."""
    others = choice(*TASKS, msprobe=msprobe)
    return lambda key, value: (
        value if isinstance(value, str) and value in beside else others(key, value)
    )


def list_of(check: Validator, allowed: Sentence | str = _LIST_OF_NAMES) -> Validator:
    """Return a validator for a list of values that pass another validator."""
    check_list = rule(lambda value: isinstance(value, (list, tuple)), allowed)
    return lambda key, value: tuple(check(key, item) for item in check_list(key, value))


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) < _BEYOND


def _match(pattern: re.Pattern[str], value: Any) -> re.Match[str] | None:
    return pattern.fullmatch(str(value)) if isinstance(value, str) or _is_whole(value) else None


def _items(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


#: validators that need no more than one condition
boolean = rule(lambda value: isinstance(value, bool), "true, false", ("true", "false"))
mapping = rule(
    lambda value: isinstance(value, Mapping) and all(isinstance(key, str) for key in value),
    say("door.object"),
)
positive = rule(
    lambda value: _is_whole(value) and 1 <= value <= 100_000,
    say("settings.whole_from", first=1, last=100_000),
)
rolling = rule(
    lambda value: _is_whole(value) and 2 <= value <= 100_000,
    say("settings.whole_from", first=2, last=100_000),
)
part = rule(
    lambda value: isinstance(value, float) and 0 < value < 1,
    say("settings.part"),
)
count = rule(
    lambda value: _is_whole(value) and 0 <= value <= 100_000,
    say("settings.whole_from", first=0, last=100_000),
)
one_or_two = rule(lambda value: _is_whole(value) and value in (1, 2), "1, 2")
sample_mode = rule(lambda value: _is_whole(value) and value in (0, 1), "0, 1")


def path(key: str, value: Any) -> str:
    """Validate a path; return it absolute, with ``~`` and ``$VAR`` expanded."""
    given = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(given, str) or not given or "\0" in given:
        refuse(key, value, say("settings.path"))
    try:
        found = os.path.abspath(_expand(key, given))
        os.fsencode(found)
    except UnicodeError:
        refuse(
            key,
            value,
            say("settings.path_letters"),
        )
    except OSError as error:
        raise SettingsError(say("settings.no_current_folder", key=key)) from error
    return found


def optional_path(key: str, value: Any) -> str | None:
    """Validate a path; msprobe's users write "" for none."""
    return path(key, value) if value != "" else None


def _expand(key: str, given: str) -> str:
    found = os.path.expanduser(given)
    if found.startswith("~"):
        raise SettingsError(
            say("settings.no_home", key=key, name=repr(printable(found.partition("/")[0])))
        )
    for variable in _VARIABLE.findall(found):
        name = variable.strip("{}")
        if not os.environ.get(name):
            raise SettingsError(say("settings.no_variable", key=key, name=repr(printable(name))))
    return os.path.expandvars(found)


def dump_path(key: str, value: Any) -> str:
    """Validate a path; return it with symbolic links resolved, so that later changes of a link have no effect."""
    return os.path.realpath(path(key, value))


def size(key: str, value: Any) -> int:
    """Validate a number of bytes.

    >>> size("max_disk", "1.5GB")
    1500000000
    """
    match = _match(_SIZE, value)
    size = int(float(match[1]) * 1000 ** (" KMGT".index(match[2].upper() or " "))) if match else 0
    if size <= 0:
        refuse(key, value, say("settings.size"))
    return size


def numbers(key: str, value: Any, further: Sentence = NOTHING) -> frozenset[int]:
    """Validate ``rank``: numbers from 0, texts like "3" and ranges like "4-6"; ``further`` ends the error message."""
    allowed = say("settings.numbers", further=further)
    found: set[int] = set()
    for item in _items(value):
        match = _match(_RANGE, item)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not 0 <= last - first < _MOST_NUMBERS - len(found):
            refuse(key, item, allowed)
        found.update(range(first, last + 1))
    return frozenset(found)


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


def steps(key: str, value: Any) -> frozenset[int] | StepSelection:
    """Validate ``step``: numbers, ranges and "every 100"."""
    matches = [(item, _match(_EVERY, item)) for item in _items(value)]
    every = frozenset(int(match[1]) for _, match in matches if match)
    some = numbers(key, [item for item, match in matches if not match], say("settings.every"))
    return StepSelection(some, every) if every else some


_name = rule(
    lambda value: isinstance(value, str) and bool(value) and not _SURROGATE.search(value), _NAMES
)
names = list_of(_name)


def regex_of(item: str) -> re.Pattern[str] | None:
    """Return the regular expression of an item of the form ``name-regex(…)``, or None for a plain text."""
    match = _NAME_REGEX.fullmatch(item)
    return re.compile(match[1]) if match else None


def _pattern(key: str, item: Any) -> str:
    """Validate a text, or a regular expression in the form ``name-regex(…)``."""
    _name(key, item)
    is_regex = item.lstrip().startswith("name-regex")
    if item.count("(") > _MOST_PARENTHESES or (is_regex and not _NAME_REGEX.fullmatch(item)):
        refuse(
            key,
            item,
            say("settings.parentheses", most=_MOST_PARENTHESES),
        )
    try:
        regex_of(item)
    except (re.error, RecursionError, OverflowError, ValueError, MemoryError, Warning) as error:
        refuse(
            key,
            item,
            say("settings.regex", reason=foreign(printable(str(error)))),
        )
    return str(item)


patterns = list_of(_pattern)

_summary_mode = rule(
    lambda value: value in ("statistics", "md5", "hash"), _LIST, ("statistics", "md5")
)


def _statistic(key: str, value: Any) -> Any:
    is_function = isinstance(value, str) and ":" in value and value not in HASHES
    if is_function and not difflib.get_close_matches(value, RANGES, 1, 0.8):
        return registered(value)
    names = (*_CHOSEN, *own_statistics())
    return rule(lambda value: value in (*names, *HASHES), ", ".join(map(repr, names)), names)(
        key, value
    )


def summary(key: str, value: Any) -> str | tuple[str, ...]:
    """Validate ``summary_mode``: "statistics", "md5", or a list of statistics, also own ones; ``HASHES`` at L2."""
    if value and isinstance(value, (list, tuple)):
        return tuple(list_of(_statistic)(key, value))
    return str(_summary_mode(key, value))


def modes(key: str, value: Any) -> frozenset[str]:
    """Validate ``data_mode``. A pair of which no word is given counts as both: ["forward"] has input and output."""
    modes = set(list_of(choice("all", *_DIRECTIONS, *_SIDES))(key, value))
    if "all" in modes and len(modes) > 1:
        refuse(key, value, say("settings.modes"))
    for pair in (_DIRECTIONS, _SIDES):
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


def condition(key: str, value: Any) -> ArrayCondition:
    """Validate ``when``: "nonfinite", or an object with "stat" and one sign: ``{"stat": "max", ">": 1e4}``."""
    if value == "nonfinite":
        return ArrayCondition()
    allowed = say("settings.when", signs=", ".join(SIGNS))
    if not isinstance(value, Mapping) or len(value) != 2 or "stat" not in value:
        refuse(key, value, allowed)
    stat = choice(*STATISTICS[:-1])(f"{key}.stat", value["stat"])
    [(sign, number)] = (item for item in value.items() if item[0] != "stat")
    usual = (
        isinstance(number, (int, float)) and not isinstance(number, bool) and abs(number) < 1e300
    )
    if sign not in SIGNS or not usual:
        refuse(key, value, allowed)
    return ArrayCondition(stat, sign, float(number))


class DimSlice(NamedTuple):
    """The range of one dimension that is written; with ``size``, only of tensors with that many elements in it."""

    dim: int
    begin: int = 0
    end: int | None = None
    size: int | None = None


def pieces(key: str, value: Any) -> tuple[DimSlice, ...]:
    """Validate ``slice``: a list of ``{"dim": 0, "begin": 0, "end": 4, "size": 128}``; only ``dim`` is needed."""
    return tuple(_piece(key, item) for item in _items(value))


def _piece(key: str, value: Any) -> DimSlice:
    given = (
        {name: number for name, number in value.items() if number is not None}
        if isinstance(value, Mapping)
        else {}
    )
    whole = (
        "dim" in given
        and given.keys() <= {*DimSlice._fields}
        and all(map(_is_whole, given.values()))
    )
    if not whole or min(given["dim"], given.get("size", 0)) < 0:
        refuse(key, value, say("settings.slice"))
    return DimSlice(**given)


def is_range(value: Any) -> bool:
    """Return whether a value fits ``start(token_range=)``: two whole numbers from 0, in order."""
    pair = isinstance(value, (list, tuple)) and len(value) == 2 and all(map(_is_whole, value))
    return pair and 0 <= value[0] <= value[1]

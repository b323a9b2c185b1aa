# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A file with the summaries of some dumps: a head, then a line of JSON for each. ``probe merge`` joins such files."""

from __future__ import annotations

import ast
import base64
import functools
import json
import sys
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from probe.door import open_text
from probe.errors import UsageError
from probe.findings.sentence import LANGUAGES, Sentence, clauses, say
from probe.findings.system import reason_of
from probe.reading.compare.origins.across_ranks import (
    Collective,
    UnitCounts,
    UnitOrigins,
    UnitSummary,
)
from probe.reading.compare.origins.origin import CodeLine, Origin, Site
from probe.reading.dumps.flow import Frame
from probe.reading.dumps.samples import Samples
from probe.reading.dumps.tables import create_whole
from probe.reading.one_run.coverage import Coverage
from probe.reading.one_run.nan import Found
from probe.reading.one_run.rank_digest import Batch, Digest, RankCollective
from probe.series.looks import Point
from probe.series.replicas import Held

#: names in annotations that stand for others
_ALIASES = {"Rank": "int | str | None", "Record": "dict[str, Any]", "Counts": "dict[str, int]"}
#: steps, ranks and counts are smaller
_MOST_BITS = 64
_PLAIN: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "bool": (bool,),
    "bytes": (bytes,),
    "None": (type(None),),
    "list": (list,),
    "Sequence": (list, tuple),
    "tuple": (tuple,),
    "dict": (dict,),
    "Mapping": (dict,),
    "frozenset": (frozenset, set),
}


def misfit(value: Any) -> str:
    """Return where an object of one of our classes, or one in it, holds a value of a wrong type; "" for nowhere.

    The annotations are read as texts: Python 3.9 cannot evaluate ``int | None``.

    >>> from probe.series.looks import Point
    >>> misfit(Point(1, 0.0)), misfit([Point("x", 0.0)])
    ('', 'Point.size is str')
    """
    if isinstance(value, dict):
        return next(filter(None, map(misfit, (*value.keys(), *value.values()))), "")
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return next(filter(None, map(misfit, value)), "")
    for name, annotation in _annotations(type(value)):
        found = getattr(value, name)
        if not _fits(found, annotation):
            return f"{type(value).__name__}.{name} is {type(found).__name__}"
        if inner := misfit(found):
            return inner
    return ""


def _annotations(kind: type) -> list[tuple[str, ast.expr]]:
    if not kind.__module__.startswith("probe."):
        return []
    own = vars(kind).get("__annotations__") or getattr(kind, "__annotations__", {})
    return [(name, _parsed(_text(text))) for name, text in own.items()]


@functools.lru_cache(256)
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _text(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    return str(
        getattr(annotation, "__forward_arg__", None) or getattr(annotation, "__name__", "Any")
    )


def _fits(value: Any, hint: ast.expr) -> bool:
    if isinstance(hint, ast.BinOp):
        return _fits(value, hint.left) or _fits(value, hint.right)
    if isinstance(hint, ast.Constant):
        return value is None if hint.value is None else True
    if isinstance(hint, ast.Subscript):
        return _fits_generic(value, hint)
    name = hint.attr if isinstance(hint, ast.Attribute) else getattr(hint, "id", "Any")
    if name in _ALIASES:
        return _fits(value, _parsed(_ALIASES[name]))
    if name not in _PLAIN:
        return (
            name == "Any"
            or type(value).__name__ == name
            or (name == "Hashable" and _is_hashable(value))
        )
    is_small = type(value) is not int or value.bit_length() < _MOST_BITS
    return (
        isinstance(value, _PLAIN[name]) and is_small and (type(value) is not bool or name == "bool")
    )


def _is_hashable(value: Any) -> bool:
    """Return whether a value, and all in it, can be the key of a dict."""
    return (
        all(map(_is_hashable, value)) if type(value) is tuple else type(value) not in (list, dict)
    )


def _fits_generic(value: Any, hint: ast.Subscript) -> bool:
    name = getattr(hint.value, "id", "Any")
    parts = hint.slice.elts if isinstance(hint.slice, ast.Tuple) else [hint.slice]
    if not _fits(value, hint.value):
        return False
    if name in ("dict", "Mapping"):
        return all(_fits(key, parts[0]) and _fits(item, parts[1]) for key, item in value.items())
    has_any_length = name != "tuple" or (
        isinstance(parts[-1], ast.Constant) and parts[-1].value is Ellipsis
    )
    if has_any_length:
        return all(_fits(item, parts[0]) for item in value)
    return len(value) == len(parts) and all(_fits(item, part) for item, part in zip(value, parts))


_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        UnitSummary,
        UnitCounts,
        UnitOrigins,
        Collective,
        Origin,
        Site,
        CodeLine,
        Frame,
        Sentence,
        Found,
        Digest,
        RankCollective,
        Batch,
        Held,
        Samples,
        Point,
        Coverage,
    )
}
#: command -> what its summaries are
_OF_COMMANDS = {"compare": UnitSummary, "nan": Found, "ranks": Digest, "trend": Samples}
_TUPLE, _DICT, _BYTES, _FORMAT = "tuple", "dict", "bytes", 1


class Head(NamedTuple):
    """The head of a file of summaries."""

    command: str  # the command that made them: "compare", "nan", "ranks" or "trend"
    settings: dict[str, Any]  # its settings; files with others cannot be put together
    paths: list[str]  # the folders that it read
    alone: Sequence[
        Sequence[Sentence | str]
    ] = ()  # the dumps that only A has, and only B, of a comparison


class _Settings(NamedTuple):
    """The settings in a head that are used again."""

    rules: list[tuple[str, str]]
    names: list[str]
    stat: str


def write_summaries(output: str, head: Head, summaries: Sequence[Any]) -> None:
    """Write summaries into a file that appears when it is complete, or to stdout for "-"; raise UsageError."""
    first = {"probe_summaries": _FORMAT, "count": len(summaries), **head._asdict()}
    lines = (json.dumps(item) + "\n" for item in (first, *map(encode, summaries)))
    if output == "-":
        sys.stdout.writelines(lines)
        return
    try:
        with create_whole(output) as file:
            file.writelines(lines)
    except OSError as error:
        raise UsageError(say("error.unwritable", path=output, reason=reason_of(error))) from error


def read_summaries(paths: Sequence[str]) -> tuple[Head, list[Any]]:
    """Return the head and the summaries of several files, by step and rank.

    Raise UsageError when one cannot be read or is cut off. Two that do not belong together, or have the same dump, are
    refused too.
    """
    heads: list[Head] = []
    found: list[Any] = []
    owner: dict[tuple[Any, Any], str] = {}
    for path in paths:
        head, summaries = _read(path)
        heads.append(head)
        if head[:2] != heads[0][:2]:
            raise UsageError(
                say(
                    "error.apart", path=paths[0], other=path, difference=_difference(heads[0], head)
                )
            )
        for summary in summaries:
            other = owner.setdefault((summary.step, summary.rank), path)
            if other != path:
                raise UsageError(
                    say(
                        "error.both_have",
                        other=other,
                        path=path,
                        step=summary.step,
                        rank=summary.rank,
                    )
                )
        found += summaries
    found.sort(key=lambda item: (item.step or 0, str(item.rank).zfill(9)))
    return _joined(heads), found


def _read(path: str) -> tuple[Head, list[Any]]:
    try:
        with open_text(path) as file:
            lines = [json.loads(line) for line in file]
        first = lines[0]
        if first.pop("probe_summaries") != _FORMAT:
            raise UsageError(say("error.other_version", path=path))
        if first.pop("count") != len(lines) - 1:
            raise UsageError(say("error.summaries_cut", path=path, count=len(lines) - 1))
        head = Head(**first)
        return _checked(
            head._replace(alone=decode(head.alone)), [decode(line) for line in lines[1:]]
        )
    except OSError as error:
        raise UsageError(say("error.unreadable", path=path, reason=reason_of(error))) from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, zlib.error):
        raise UsageError(say("error.no_summaries", path=path)) from None


def _checked(head: Head, found: list[Any]) -> tuple[Head, list[Any]]:
    """Return the content of a file; raise TypeError where it is of other types than those that are written."""
    rules: Any = [tuple(rule) for rule in head.settings.get("rules", [])]
    settings = _Settings(rules, head.settings.get("names", []), head.settings.get("stat", ""))
    kinds, sides = {type(item) for item in found}, 2 if head.command == "compare" else 1
    if (
        misfit([head, settings, *found])
        or kinds - {_OF_COMMANDS.get(head.command)}
        or len(head.paths) != sides
    ):
        raise TypeError
    if sides == 2 and len(head.alone) != 2:
        raise TypeError
    if head.command == "trend" and len(settings.names) != 3:  # the fields of Names
        raise TypeError
    if any(
        len(item.norms) != 4 * len(item.call_names()) for item in found if isinstance(item, Digest)
    ):
        raise TypeError
    return head, found


def _difference(head: Head, other: Head) -> Sentence:
    """Return the command, or the settings, in which two files differ."""
    if head.command != other.command:
        return say("error.apart_command", left=head.command, right=other.command)
    keys = [
        key
        for key in {**head.settings, **other.settings}
        if head.settings.get(key) != other.settings.get(key)
    ]
    shown = {
        key: [json.dumps(side.settings.get(key, "")) for side in (head, other)] for key in keys
    }
    return clauses(
        *(
            say("error.apart_by", key=key, left=left, right=right)
            for key, (left, right) in shown.items()
        )
    )


def _joined(heads: list[Head]) -> Head:
    paths = [list(dict.fromkeys(places)) for places in zip(*(head.paths for head in heads))]
    return heads[0]._replace(
        paths=[
            places[0] + (f" and {len(places) - 1} more" if len(places) > 1 else "")
            for places in paths
        ],
        alone=[
            [label for part in sides for label in part]
            for sides in zip(*(head.alone for head in heads))
        ],
    )


def encode(value: Any) -> Any:
    """Return a summary as JSON.

    >>> encode(Collective(("world", "AllReduce", 1), True, False))
    {'Collective': [{'tuple': ['world', 'AllReduce', 1]}, True, False]}
    """
    kind = type(value)
    if kind.__name__ in _KINDS and kind is _KINDS[kind.__name__]:
        names = getattr(kind, "__dataclass_fields__", getattr(kind, "_fields", ()))
        return {kind.__name__: [encode(getattr(value, name)) for name in names]}
    if kind is tuple:
        return {_TUPLE: [encode(item) for item in value]}
    if kind is bytes:
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    if kind is list:
        return [encode(item) for item in value]
    if kind is dict:
        return {_DICT: [[encode(key), encode(item)] for key, item in value.items()]}
    return value


def decode(value: Any) -> Any:
    """Return the summary that JSON stands for.

    >>> decode({"tuple": [1, {"dict": [["a", None]]}]})
    (1, {'a': None})

    Raise LookupError when it has an unknown kind, TypeError or ValueError when it has the wrong parts.
    """
    if type(value) is list:
        return [decode(item) for item in value]
    if type(value) is not dict:
        return value
    ((name, parts),) = value.items()
    if name == _TUPLE:
        return tuple(decode(item) for item in parts)
    if name == _BYTES:
        return base64.b64decode(parts)
    if name == _DICT:
        return {decode(key): decode(item) for key, item in parts}
    made = _KINDS[name](*(decode(part) for part in parts))
    if type(made) is Sentence:
        [
            made.text(language) for language in LANGUAGES
        ]  # a fact may be missing, or not fit its form
    return made

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Origins that are one change: in several steps and ranks, or in several calls of one line of code.

A change is known by its calls on both sides, and by its line on either side. So it is one in both orders of a
comparison, also where the code of one side has a loop, and that of the other side several lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace

from probe.findings.sentence import Sentence, clauses, say
from probe.reading.compare.origins.origin import Kind, Origin
from probe.reading.dumps.entry_name import parse
from probe.reading.dumps.flow import Frame

_OF_STATEMENTS = (Kind.WIRING, Kind.CALLS, Kind.ARGUMENT)
#: the side of a call, and its name
_Call = tuple[str, str]
#: what origins that are one change share
_Key = tuple[Hashable, ...]
#: the number of a layer in the path of a Cell
_NUMBER = re.compile(r"\.\d+(?=\.)|^\d+(?=\.)")


def change_of(origin: Origin) -> _Key:
    """Return what the same change of one call shares in all steps and ranks."""
    has_calls = any(origin.site.calls)
    calls = sorted(origin.site.calls) if has_calls else [origin.name]
    return origin.kind, *calls, origin.place


def once(origins: Iterable[Origin]) -> list[Origin]:
    """Return the first of those that are one thing in several steps and ranks."""
    found: dict[_Key, Origin] = {}
    for origin in origins:
        found.setdefault(change_of(origin), origin)
    return list(found.values())


def of_lines(
    origins: Sequence[Origin], later: Sequence[Origin]
) -> tuple[list[Origin], list[Origin]]:
    """Return the later ones that are calls of the lines of origins, and the other ones."""
    lines: set[_Key] = set()
    for origin in origins:
        if origin.file is not None:
            lines.update(_line_keys(origin))
    same: list[Origin] = []
    rest: list[Origin] = []
    for origin in later:
        is_same = not lines.isdisjoint(_line_keys(origin))
        (same if is_same else rest).append(origin)
    return same, rest


class Named:
    """The calls that origins name. One name may stand for another call on the other side."""

    def __init__(self, origins: Iterable[Origin]) -> None:
        self._calls: set[_Call] = set()
        self._more: set[str] = set()
        for origin in origins:
            self._calls.update(_calls(origin))
            self._more.update(origin.more)

    def holds(self, origin: Origin) -> bool:
        """Return whether a call of an origin is named."""
        if origin.name in self._more:
            return True
        return not self._calls.isdisjoint(_calls(origin))


def _calls(origin: Origin) -> list[_Call]:
    return [(side, name) for side, name, _ in _sides(origin)]


def merged(origins: Iterable[Origin]) -> list[Origin]:
    """Return the origins, of which one stands for all ranks and for all calls of its line."""
    found: dict[_Key, list[Origin]] = {}
    for origin in origins:
        in_step = (*change_of(origin), origin.step)
        found.setdefault(in_step, []).append(origin)
    return _lines_once(map(_of_all_ranks, found.values()))


def _of_all_ranks(same: Sequence[Origin]) -> Origin:
    """Return the first of some origins, with the ranks of all."""
    first = same[0]
    ranks = list(first.ranks)
    for origin in same[1:]:
        if origin.rank not in (first.rank, *ranks):
            ranks.append(origin.rank)
    return replace(first, ranks=ranks)


def _sides(origin: Origin) -> Iterator[tuple[str, str, Frame | None]]:
    """Yield the side, the call and the line of an origin, for each side that has it; a parameter has one alone."""
    if not any(origin.site.calls):
        yield "", origin.name, origin.code.frame
    for side, name, frame in zip("AB", origin.site.calls, origin.code.frames):
        if name:
            yield side, name, frame


def _line_keys(origin: Origin) -> Iterator[_Key]:
    """Yield, for each side that has an origin, what the same change of one line of its code shares.

    Another wiring, other calls and other arguments of one line are one change of it. If its text is the same on both
    sides, that holds in one Cell of each layer.
    """
    has_one_text = _has_one_text(origin)
    if has_one_text:
        yield from _keys_of_value(origin)
    else:
        yield from _keys_of_neighbours(origin)
    is_of_statement = origin.kind in _OF_STATEMENTS
    for side, name, frame in _sides(origin):
        if frame is not None and is_of_statement:
            line_of_step = (side, origin.step, frame.file, frame.line)
            yield (*line_of_step, _layer_of(origin.cell))
            if not has_one_text:
                yield line_of_step
            continue
        line = (name,) if frame is None else (frame.file, frame.line)
        change = (side, origin.step, origin.kind, origin.place)
        yield *change, parse(name).key, *line


def _keys_of_value(origin: Origin) -> Iterator[_Key]:
    """Yield a key of the value that differs, which calls of several lines share; the texts of the lines are equal.

    The value is the variable of a loop, say, or an output that was exchanged with another one of its call.
    """
    said = _first_sentence(origin)
    if said.key == "compare.other_argument":
        yield origin.step, _layer_of(origin.cell), *_values(origin)
    elif said.key in ("compare.other_output", "compare.other_content"):
        yield origin.step, str(said.facts["maker"])


def _keys_of_neighbours(origin: Origin) -> Iterator[_Key]:
    """Yield two keys of a line that was edited; the line behind it, edited with it, shares one of them."""
    frame_a, frame_b = origin.code.frames
    if frame_a is None or frame_b is None or origin.kind not in _OF_STATEMENTS:
        return
    change = (origin.step, origin.kind, origin.place, parse(origin.name).key, origin.cell)
    for further in (0, 1):
        line_a = (frame_a.file, frame_a.line + further)
        line_b = (frame_b.file, frame_b.line + further)
        yield *change, line_a, line_b


def _has_one_text(origin: Origin) -> bool:
    """Return whether the line of an origin has the same text on both sides."""
    texts = [frame.source for frame in origin.code.frames if frame is not None]
    return len(texts) > 1 and texts[0] == texts[1]


def _values(origin: Origin) -> tuple[str, str]:
    """Return the values of an argument in A and in B, as texts."""
    said = _first_sentence(origin)
    return str(said.facts.get("left")), str(said.facts.get("right"))


def _first_sentence(origin: Origin) -> Sentence:
    said = origin.said
    while "parts" in said.facts:
        said = said.facts["parts"][0]
    return said


def _layer_of(cell: str | None) -> str:
    """Return a Cell without the numbers of layers.

    >>> _layer_of("layers.1.skip.Conv1d") == _layer_of("layers.2.skip.Conv1d")
    True
    """
    return _NUMBER.sub(".*", cell or "")


def _lines_once(origins: Iterable[Origin]) -> list[Origin]:
    """Sum up the same change of one line of code: a line in a loop runs for each layer or parameter."""
    lines: dict[Origin, _Line] = {}
    for origin, first in _firsts(origins, _line_keys):
        lines.setdefault(first, _Line(first)).add(origin)
    return [line.origin() for line in lines.values()]


class _Line:
    """The changes of one line of code, for all of which the first stands."""

    def __init__(self, first: Origin) -> None:
        self._first = first
        #: the calls of all, which have other names on the two sides
        self._calls: set[_Call] = set()
        self._more: list[str] = []
        self._counts: Counter[str] = Counter()  # key of a sentence -> the changes that it counts

    def add(self, origin: Origin) -> None:
        """Add a change, which may be the first."""
        calls = _calls(origin)
        if origin is not self._first and self._calls.isdisjoint(calls):
            is_elsewhere = _stands_elsewhere(origin, self._first)
            self._counts["compare.more_lines" if is_elsewhere else "compare.more_calls"] += 1
            self._more.append(origin.name)
        self._calls.update(calls)

    def origin(self) -> Origin:
        """Return the first change with the names and the number of the others."""
        said = self._first.said
        for key, count in self._counts.items():
            said = clauses(said, say(key, count=count))
        return replace(self._first, said=said, more=[*self._first.more, *self._more])


def _stands_elsewhere(origin: Origin, first: Origin) -> bool:
    """Return whether two changes are known to be of other lines."""
    own = _lines(origin)
    known = _lines(first)
    return bool(own and known) and own.isdisjoint(known)


def _lines(origin: Origin) -> set[tuple[str, str, int]]:
    """Return the side, the file and the line of a change, on each side that has one."""
    sides = _sides(origin)
    return {(side, frame.file, frame.line) for side, _, frame in sides if frame is not None}


def _firsts(
    origins: Iterable[Origin], keys_of: Callable[[Origin], Iterable[Hashable]]
) -> Iterator[tuple[Origin, Origin]]:
    """Yield each origin with the first one that shares a key with it, which may be itself."""
    known: dict[Hashable, Origin] = {}
    for origin in origins:
        keys = list(keys_of(origin))
        first = next((known[key] for key in keys if key in known), origin)
        for key in keys:
            known.setdefault(key, first)
        yield origin, first


def like_once(origins: Iterable[Origin]) -> list[Origin]:
    """Return the first of changes that are alike: a call more shifts the partners of all calls behind it by one.

    They have one kind and place, calls of one API, and one line of code. An argument is alike where its values are.
    """
    return [origin for origin, first in _firsts(origins, _alike_keys) if first is origin]


def _alike_keys(origin: Origin) -> Iterator[_Key]:
    values = _values(origin) if origin.kind == Kind.ARGUMENT else ("", "")
    change = (origin.kind, origin.place, origin.said.key, values)
    for side, name, frame in _sides(origin):
        line = None if frame is None else (frame.file, frame.line)
        yield side, *change, parse(name).key, line

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The dataflow of one step: who made which tensor, and who uses it.

A dump has no identities of tensors. Equal content tells them: same number of elements, dtype and numbers (or same
CRC-32). An input without a producer comes from outside: a parameter, data, a constant, or a call that was not recorded.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from probe.reading.dumps import entry_name
from probe.reading.dumps.entry_name import BACKWARD, CELL, FORWARD, GRADIENT, EntryName
from probe.reading.dumps.folders import Contents
from probe.reading.dumps.updates import is_update
from probe.reading.dumps.values import (
    TENSORS,
    Record,
    count_of,
    is_tensor,
    leaves,
    part_of,
    tensors_in,
)

_FRAME = re.compile(
    r"File (?P<file>.+), line (?P<line>\d+), in (?P<function>[^\n]*?),? ?\n ?(?P<source>.*)",
    re.DOTALL,
)
_BARE = re.compile(r"File (?P<file>.+), line (?P<line>\d+), in (?P<function>[^\n]*)")
_OURS = re.compile(r"(site|dist)-packages[/\\](mindspore|probe|msprobe|torch)[/\\]")
#: content that this many calls of a step have made is no evidence, but within one Cell
_COMMON = 8
_WORDS = (("input_args", "input"), ("input_kwargs", "kwargs"))
_OUTSIDE = -1
#: the dtype of masks, which have no numbers to know them by
MASK = "Bool"
#: content -> the calls that made it, each with its record
_Made = dict[tuple[Any, ...], list[tuple[int, Any]]]
#: makes a Link in half of the time
_new: Callable[..., Link] = tuple.__new__


class Frame(NamedTuple):
    """One frame: the file, the line's number, the function, and the text of the line."""

    file: str
    line: int
    function: str
    source: str

    def __str__(self) -> str:
        return (
            f"{self.file}:{self.line}: {self.source}" if self.source else f"{self.file}:{self.line}"
        )


def parse(text: str) -> Frame | None:
    r"""Take the text of a frame apart; None where it is none.

    >>> parse("File /p/f.py, line 23, in construct, \n x = self.a(x)")
    Frame(file='/p/f.py', line=23, function='construct', source='x = self.a(x)')
    """
    found = _FRAME.match(text) or _BARE.match(text)
    if found is None:
        return None
    parts = found.groupdict()
    return Frame(
        parts["file"],
        int(parts["line"][:18]),
        parts["function"],
        (parts.get("source") or "").strip(),
    )


def user_frame(frames: Sequence[str]) -> Frame | None:
    r"""Return the innermost frame outside of MindSpore and of the recorder; the innermost where all are inside.

    >>> inner = "File /x/site-packages/mindspore/nn/cell.py, line 1, in f, \n a"
    >>> user_frame([inner, "File /me/t.py, line 2, in g, \n b"]).line
    2
    """
    return next(iter(user_frames(frames)), None)


def user_frames(frames: Sequence[str]) -> list[Frame]:
    """Return the frames outside of MindSpore and of the recorder, the innermost first; all where all are inside."""
    parsed = [frame for frame in map(parse, frames) if frame is not None]
    return [frame for frame in parsed if not _OURS.search(frame.file)] or parsed


class Link(NamedTuple):
    """One tensor that a call was given."""

    place: str  # where: "input.0", "kwargs.mask"
    record: Record
    producer: int  # the position of the call that made it; -1 where it comes from outside
    parameter: tuple[str, str] | None = (
        None  # (Cell entry, parameter) where it is a parameter, else None
    )
    #: the first call that made this content, from which views and identities pass it on; -1 for none
    root: int = _OUTSIDE


def content_key(record: Record) -> tuple[Any, ...] | None:
    """Return the part of a record that is equal in all records of one tensor; None where nothing is known.

    >>> a = {"dtype": "Float32", "shape": [2, 3], "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 2.0}
    >>> content_key(a) == content_key({**a, "shape": [6]}), content_key({"shape": [2]})
    (True, None)
    """
    get = record.get
    crc = get("md5")
    if crc:
        return get("dtype"), crc
    norm = get("Norm")
    shape = get("shape")
    if norm is None or shape is None:
        return None
    return math.prod(shape), get("dtype"), get("Max"), get("Min"), get("Mean"), norm


def link_key(record: Record) -> tuple[Any, ...] | None:
    """Return the content of a tensor; of a mask without a checksum its size: bools have no numbers that tell more."""
    key = content_key(record)
    if key is None and record.get("dtype") == MASK:
        return MASK, count_of(record), record.get("Max"), record.get("Min")
    return key


def loose_key(record: Record) -> tuple[Any, ...]:
    """Return what a permutation of a tensor keeps: size, dtype, the greatest and the least element."""
    return (
        count_of(record),
        record.get("dtype"),
        str(record.get("Max")),
        str(record.get("Min")),
    )


def is_constant(record: Record) -> bool:
    """Return whether all elements are equal, so that the content tells little.

    >>> is_constant({"Max": 1.0, "Min": 1.0, "shape": [3]}), is_constant({"Max": 0.37, "Min": 0.37, "shape": []})
    (True, False)
    """
    low = record.get("Min")
    high = record.get("Max")
    if low is None or low != high:
        return False
    shape = record.get("shape")
    return bool(shape and any(size != 1 for size in shape)) or (
        isinstance(low, (int, float)) and low == low // 1
    )


def tells(record: Record) -> bool:
    """Return whether a content is enough to know a value by: it has several elements, which are not all equal.

    >>> tells({"shape": [3], "Max": 2.0, "Min": 1.0, "Norm": 3.0}), tells({"shape": [], "Max": 2.0, "Norm": 2.0})
    (True, False)
    """
    return is_varied(record) and content_key(record) is not None


def is_varied(record: Record) -> bool:
    """Return whether a tensor has several elements, which are not all equal."""
    size = count_of(record)
    return (size is None or size > 1) and not is_constant(record)


class Flow:
    """Links the inputs of every call to the calls that made them.

    ``names`` are the entries in the order of the file, ``parts`` the same taken apart. ``like`` is the dataflow of a
    dump that may have the same names.
    """

    def __init__(self, dump: Contents, like: Flow | None = None) -> None:
        self._dump = dump
        same = like if like is not None and like.names == list(dump.data) else None
        self.names: list[str] = same.names if same else list(dump.data)
        places = same.position if same else {name: place for place, name in enumerate(self.names)}
        self.position: dict[str, int] = places  # entry name -> its place in ``names``
        self.parts: list[EntryName] = (
            same.parts if same else [entry_name.parse(name) for name in self.names]
        )
        construct = dump.construct
        self.cells = [
            construct.get(name) for name in self.names
        ]  # for each entry the entry of the Cell around it
        #: the Cell entries that hold other calls, whose work is theirs
        self.containers = frozenset(parent for parent in construct.values() if parent)
        self._parameters = self._find_parameters()
        self.links: list[tuple[Link, ...]] = [()] * len(
            self.names
        )  # for each forward entry the tensors it was given
        self.used_by: dict[
            int, list[int]
        ] = {}  # a forward entry -> the positions of the calls that use its outputs
        self.dtypes: set[Any] = set()  # of all tensors
        self._backward: dict[Any, int] | None = None
        self._loose: dict[Any, int] | None = None
        self._link()

    def _find_parameters(self) -> dict[tuple[Any, ...], tuple[str, str]]:
        found: dict[tuple[Any, ...], tuple[str, str]] = {}
        for (name, entry), parts in zip(self._dump.data.items(), self.parts):
            given = (
                [entry.get(part) for part in ("parameters", "model_parameters")]
                if type(entry) is dict
                else []
            )
            if given == [None, None] or is_update(
                parts, entry
            ):  # an update has states, which are no parameters
                continue
            for parameters in given:
                for key, record in parameters.items() if type(parameters) is dict else ():
                    content = content_key(record) if is_tensor(record) else None
                    if content is not None:
                        found.setdefault(content, (name, key))
        return found

    def _link(self) -> None:
        made: _Made = {}
        directions = [parts.direction for parts in self.parts]
        #: whether calls come after a backward, which may be given gradients
        goes_on = BACKWARD in directions and FORWARD in directions[directions.index(BACKWARD) :]
        for place, (entry, parts) in enumerate(zip(self._dump.data.values(), self.parts)):
            if type(entry) is not dict:
                continue
            if (
                parts.direction == BACKWARD
            ):  # calls after it may be given gradients: reductions, clipping
                if goes_on and parts.kind != CELL:
                    self._make_gradients(
                        place, entry if parts.kind == GRADIENT else entry.get("output"), made
                    )
                continue
            self.links[place] = links = tuple(self._inputs(place, entry, made))
            if parts.kind == CELL and self.names[place] in self.containers:
                self._make(place, entry.get("output"), made, only_new=True)
                continue
            for link in links:
                if link.producer >= 0:
                    self.used_by.setdefault(link.producer, []).append(place)
            self._make(place, entry.get("output"), made, only_new=False)

    def _inputs(self, place: int, entry: dict[str, Any], made: _Made) -> list[Link]:
        links = []
        for key, word in _WORDS:
            for inner, given in leaves(entry.get(key)):
                if type(given) is dict and given.get("type") in TENSORS:
                    self.dtypes.add(str(given.get("dtype")))
                    name = f"{word}.{inner}"
                    links.append(
                        _new(Link, (sys.intern(name), given, *self._origin(place, given, made)))
                    )
        return links

    def _origin(
        self, place: int, record: Record, made: _Made
    ) -> tuple[int, tuple[str, str] | None, int]:
        key = link_key(record)
        if key is None:
            return _OUTSIDE, None, _OUTSIDE
        producers = made.get(key)
        if producers:
            shape = record.get("shape")
            last = producers[-1]
            if last[1].get("shape") != shape:
                last = next(
                    (item for item in reversed(producers[-16:]) if item[1].get("shape") == shape),
                    last,
                )
            latest = last[0]  # without one of this shape the last one: a view that was not recorded
            if len(producers) <= _COMMON and not (key[0] == MASK or is_constant(record)):
                return latest, None, producers[0][0]
            cell = self.cells[place]
            if latest == place - 1 or (cell is not None and self.cells[latest] == cell):
                return latest, None, latest
            if not (key[0] == MASK or is_constant(record)):
                return latest, None, _OUTSIDE
            if (
                len(producers) == 1
                and key not in self._parameters
                and self._is_made_of_constants(latest)
            ):
                return latest, None, latest
        return _OUTSIDE, self._own_parameter(place, key), _OUTSIDE

    def _is_made_of_constants(self, place: int) -> bool:
        """Return whether a call was given constants alone: then its constant output is its own, such as ones * 0.9."""
        is_forward = self.parts[place].direction == FORWARD
        return is_forward and all(
            link.record.get("Max") == link.record.get("Min") for link in self.links[place]
        )

    def _own_parameter(self, place: int, key: tuple[Any, ...]) -> tuple[str, str] | None:
        """Return which parameter has this content: of the Cell around the call if it has one, else of any Cell."""
        anywhere = self._parameters.get(key)
        if anywhere is None:
            return None
        cell = self.cells[place]
        entry = self._dump.data.get(cell) if cell else None
        parameters = part_of(entry, "parameters")
        if type(parameters) is dict and cell:
            for name, record in parameters.items():
                if is_tensor(record) and content_key(record) == key:
                    return cell, name
        return anywhere

    def _make(self, place: int, outputs: Any, made: _Made, only_new: bool) -> None:
        for _, record in leaves(outputs):
            if type(record) is dict and record.get("type") in TENSORS:
                self.dtypes.add(str(record.get("dtype")))
                key = link_key(record)
                if key is None:
                    continue
                known = made.get(key)
                if known is None:
                    made[key] = [(place, record)]
                elif not only_new:
                    known.append((place, record))

    def _make_gradients(self, place: int, part: Any, made: _Made) -> None:
        """Note who made gradients: that of a parameter is the parameter's, in whichever order their entries stand."""
        is_parameter = self.parts[place].kind == GRADIENT
        for _, record in leaves(part):
            key = content_key(record) if is_tensor(record) else None
            if key is None:
                continue
            self.dtypes.add(str(record.get("dtype")))
            known = made.setdefault(key, [])
            kinds = {self.parts[maker].kind for maker, _ in known}
            if (
                is_parameter
                and GRADIENT not in kinds
                and known
                and self.parts[known[0][0]].direction == BACKWARD
            ):
                known.clear()
            if is_parameter or GRADIENT not in kinds:
                known.append((place, record))

    def loose_root(self, link: Link) -> int:
        """Return the first call that made a tensor of this size and extrema, which a permutation keeps; -1 for none."""
        if self._loose is None:
            self._loose = self._first_makers(loose_key, lambda parts: parts.direction != BACKWARD)
        return self._loose.get(loose_key(link.record), _OUTSIDE)

    def producer(self, name: str, place: str, record: Record) -> str | None:
        """Return the entry that made a tensor at a place of an entry; an output is made by its own entry."""
        own = self.position[name]
        parts = self.parts[own]
        if place.startswith("output") or parts.kind == GRADIENT:
            return name
        if parts.direction == BACKWARD:
            return self._gradient_producer(own, record)
        made = next((link.producer for link in self.links[own] if link.place == place), _OUTSIDE)
        return None if made < 0 else self.names[made]

    def users(self, name: str, place: str, record: Record) -> list[str]:
        """Return the entries that were given a tensor; the arguments are those of ``producer``."""
        producer = self.producer(name, place, record)
        key = content_key(record)
        if producer is None or key is None:
            return []
        maker = self.position[producer]
        given = ((user, link) for user in self.used_by.get(maker, ()) for link in self.links[user])
        users = (
            user
            for user, link in given
            if link.producer == maker and content_key(link.record) == key
        )
        return [self.names[user] for user in dict.fromkeys(users)]

    def _gradient_producer(self, own: int, record: Record) -> str | None:
        """Return the backward that gave this gradient; None for a sum of several, or one from outside."""
        if self._backward is None:
            self._backward = self._first_makers(
                content_key, lambda it: it.direction == BACKWARD and it.kind != GRADIENT
            )
        key = content_key(record)
        place_of = None if key is None else self._backward.get(key)
        return None if place_of is None or place_of >= own else self.names[place_of]

    def _first_makers(
        self, key: Callable[[Record], Any], is_wanted: Callable[[EntryName], bool]
    ) -> dict[Any, int]:
        """Return the key of each output -> the position of the first call that made it."""
        found: dict[Any, int] = {}
        for place, (name, parts) in enumerate(zip(self.names, self.parts)):
            for record in tensors_in(self._dump.data[name], "output") if is_wanted(parts) else ():
                found.setdefault(key(record), place)
        return found

    def backward_of(self, place: int) -> int | None:
        """Return the position of the backward of a forward entry; None where it has none."""
        return self.position.get(backward_name(self.names[place], self.parts[place]))

    def forward_of(self, place: int) -> int | None:
        """Return the position of the forward of a backward entry; None where it was not recorded."""
        return self.position.get(self.parts[place].forward)

    def backward_causes(self, place: int) -> Iterable[int]:
        """Yield the positions that a backward entry's gradients come from: backwards of the users of its forward."""
        forward = self.forward_of(place)
        if forward is None:
            return
        yield forward
        for user in self.used_by.get(forward, ()):
            yield user
            backward = self.backward_of(user)
            if backward is not None:
                yield backward


def backward_name(name: str, parts: EntryName) -> str:
    """Return the name of the backward of a forward entry.

    >>> backward_name("Cell.fc.Dense.forward.1", entry_name.parse("Cell.fc.Dense.forward.1"))
    'Cell.fc.Dense.backward.1'
    """
    return (
        f"{parts.key}.{BACKWARD}.{parts.number}"
        if parts.kind == CELL
        else name[: -len(FORWARD)] + BACKWARD
    )

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A dump whose entries may get another form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from probe.reading.dumps.dump import Dump
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.values import Record, is_tensor


class NormalDump(Dump):
    """A dump with entries of its own; the opened dump that it is made of is never changed."""

    def __init__(self, dump: Dump) -> None:
        document = dump.document._replace(data=dict(dump.data))
        super().__init__(dump.folder, document)
        self._original = dump
        self._copied: set[str] = set()
        #: (entry, place) -> its place on disk, if that is another one
        self.moved: dict[tuple[str, str], str] = {}

    @property
    def stacks(self) -> dict[str, list[str]]:
        """Forward entry name -> frames, innermost first."""
        return self._original.stacks

    @property
    def construct(self) -> dict[str, str | None]:
        """Entry name -> the entry of the Cell around it."""
        return self._original.construct

    def own(self, name: str) -> Any:
        """Return an entry that may be changed, but for its records of tensors, which are shared."""
        if name not in self._copied:
            self._copied.add(name)
            self.data[name] = _copy(self.data[name])
        return self.data[name]

    def replace_records(self, name: str, other: Callable[[Record], Record]) -> None:
        """Put other records in the place of an entry's records of tensors."""
        self._copied.add(name)
        self.data[name] = _copy(self.data[name], other)

    def note_moves(self, name: str, moved: Mapping[str, str]) -> None:
        """Note that tensors of an entry stand at other places than on disk: place on disk -> new one."""
        for old, new in moved.items():
            self.moved[name, new] = old

    def on_disk(self, name: str, place: str) -> str:
        """Return where a place of an entry, such as "input.0", stands in the file."""
        return self.moved.get((name, place), place)


def move_links(flow: Flow, place: int, moved: Mapping[str, str]) -> None:
    """Give the inputs of a call their new places in its entry."""
    links = []
    for link in flow.links[place]:
        new = moved.get(link.place, link.place)
        links.append(link._replace(place=new))
    flow.links[place] = tuple(links)


def sort_links(flow: Flow, place: int) -> None:
    """Let the inputs of a call stand in the order of their places."""
    links = sorted(flow.links[place], key=lambda link: link.place)
    flow.links[place] = tuple(links)


def _copy(value: Any, other: Callable[[Record], Record] | None = None) -> Any:
    """Return a copy of lists and dicts, with other records of tensors; plain values stay the same objects."""
    if is_tensor(value):
        return other(value) if other else value
    if type(value) is list:
        return [_copy(item, other) for item in value]
    if type(value) is dict and "type" not in value:
        return {key: _copy(item, other) for key, item in value.items()}
    return value

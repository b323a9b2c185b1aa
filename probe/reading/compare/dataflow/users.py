# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The calls that are given the outputs of a call, or values that are equal to them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.dumps.entry_name import BACKWARD, FORWARD
from probe.reading.dumps.flow import MASK, Flow, content_key, is_constant
from probe.reading.dumps.values import Record, tensors_in

#: the content of a value -> a call
_Calls = dict[Any, int]
#: the content of a value -> the calls that are given it
_Users = dict[Any, list[int]]


class Users:
    """Finds the users of the calls of two dumps."""

    def __init__(self, alignment: Alignment) -> None:
        self._alignment = alignment

    def of(self, side: int, place: int) -> Sequence[int]:
        """Return the calls that are given the outputs of a call, or equal outputs of another one.

        If two calls have equal outputs, all their users are linked with one of them. Masks and constants, such as
        zeros, have no numbers to link them by: calls behind it that are given such a value may be given this one.
        """
        flow = self._alignment.flows[side]
        users = flow.used_by.get(place, ())
        if users or flow.parts[place].direction == BACKWARD:
            return users
        made = tensors_in(self._alignment.entry(side, place), "output")
        found: list[int] = []
        for twin in sorted(self._twins(side, made)):
            found += flow.used_by.get(twin, ())
        given_plain = self._given_plain[side]
        for record in filter(_is_plain, made):
            behind = given_plain.get(content_of(record), ())
            found += [user for user in behind if user > place]
        return found

    def _twins(self, side: int, made: Sequence[Record]) -> set[int]:
        """Return the calls with users, as far as the dataflow knows them, that made one of some values."""
        known = self._used[side]
        contents = {content_of(record) for record in made}
        return {known[content] for content in contents if content in known}

    def may_be_made(self, side: int, place: int, record: Record) -> bool:
        """Return whether a value without a known maker may be that of a call before: a mask, or a constant."""
        if not _is_plain(record):
            return False
        first = self._made_plain[side].get(content_of(record))
        return first is not None and first < place

    @functools.cached_property
    def _made_plain(self) -> tuple[_Calls, _Calls]:
        """Return side -> a mask or a constant -> the first call that made it."""
        return self._makers_of_plain(0), self._makers_of_plain(1)

    def _makers_of_plain(self, side: int) -> _Calls:
        flow = self._alignment.flows[side]
        found: _Calls = {}
        for place, parts in enumerate(flow.parts):
            if parts.direction != FORWARD:
                continue
            made = tensors_in(self._alignment.entry(side, place), "output")
            for record in filter(_is_plain, made):
                found.setdefault(content_of(record), place)
        return found

    @functools.cached_property
    def _given_plain(self) -> tuple[_Users, _Users]:
        """Return side -> a mask or a constant that no call is known to have made -> the calls that are given it."""
        flow_a, flow_b = self._alignment.flows
        return _users_of_plain(flow_a), _users_of_plain(flow_b)

    @functools.cached_property
    def _used(self) -> tuple[_Calls, _Calls]:
        """Return side -> content of an input -> the call that is linked as its producer."""
        flow_a, flow_b = self._alignment.flows
        return _producers(flow_a), _producers(flow_b)


def _producers(flow: Flow) -> _Calls:
    """Return the content of each input -> the call that is linked as its producer."""
    found: _Calls = {}
    for links in flow.links:
        for link in links:
            if link.producer >= 0:
                found[content_of(link.record)] = link.producer
    return found


def _users_of_plain(flow: Flow) -> _Users:
    found: _Users = {}
    for place, links in enumerate(flow.links):
        for link in links:
            if link.producer < 0 and _is_plain(link.record):
                found.setdefault(content_of(link.record), []).append(place)
    return found


def _is_plain(record: Record) -> bool:
    """Return whether a value is a mask or a constant: its content is no evidence of the call that made it."""
    return record.get("dtype") == MASK or is_constant(record)


def content_of(record: Record) -> tuple[Any, str]:
    """Return the content of a tensor, with its shape: the statistics of a transpose are the same."""
    return content_key(record), str(record.get("shape"))

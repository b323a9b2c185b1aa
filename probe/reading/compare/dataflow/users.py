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
        known = self._used[side]
        contents = {content_of(record) for record in made}
        twins = {known[content] for content in contents if content in known}
        of_twins = [user for twin in sorted(twins) for user in flow.used_by.get(twin, ())]
        plain = [content_of(record) for record in made if _is_plain(record)]
        of_plain = (user for content in plain for user in self._given_plain[side].get(content, ()))
        return [*of_twins, *(user for user in of_plain if user > place)]

    def may_be_made(self, side: int, place: int, record: Record) -> bool:
        """Return whether a value without a known maker may be that of a call before: a mask, or a constant."""
        first = self._made_plain[side].get(content_of(record)) if _is_plain(record) else None
        return first is not None and first < place

    @functools.cached_property
    def _made_plain(self) -> tuple[dict[Any, int], dict[Any, int]]:
        """Return side -> a mask or a constant -> the first call that made it."""
        return self._makers_of_plain(0), self._makers_of_plain(1)

    def _makers_of_plain(self, side: int) -> dict[Any, int]:
        flow = self._alignment.flows[side]
        found: dict[Any, int] = {}
        for place, parts in enumerate(flow.parts):
            if parts.direction == FORWARD:
                for record in tensors_in(self._alignment.entry(side, place), "output"):
                    if _is_plain(record):
                        found.setdefault(content_of(record), place)
        return found

    @functools.cached_property
    def _given_plain(self) -> tuple[dict[Any, list[int]], dict[Any, list[int]]]:
        """Return side -> a mask or a constant that no call is known to have made -> the calls that are given it."""
        flow_a, flow_b = self._alignment.flows
        return _users_of_plain(flow_a), _users_of_plain(flow_b)

    @functools.cached_property
    def _used(self) -> tuple[dict[Any, int], dict[Any, int]]:
        """Return side -> content of an input -> the call that is linked as its producer."""
        flow_a, flow_b = self._alignment.flows
        return _producers(flow_a), _producers(flow_b)


def _producers(flow: Flow) -> dict[Any, int]:
    """Return the content of each input -> the call that is linked as its producer."""
    found: dict[Any, int] = {}
    for links in flow.links:
        for link in links:
            if link.producer >= 0:
                found[content_of(link.record)] = link.producer
    return found


def _users_of_plain(flow: Flow) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
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

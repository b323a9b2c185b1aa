# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Selects calls by name: the settings scope, list and exclude."""

from __future__ import annotations

from probe.config.settings import Settings
from probe.config.validators import regex_of
from probe.recording.call import Call


class NameFilter:
    """Decides by name, for one step.

    ``scope`` is an interval in time: it opens when the first name begins and closes when the second has ended.
    ``list`` and ``exclude`` match by substring or regular expression. A Cell that matches stands for every call that
    runs inside it.
    """

    def __init__(self, settings: Settings) -> None:
        self._first, self._last = settings.scope or ("", "")
        self._list = settings.list
        self._tensor_list = settings.tensor_list
        self._exclude = settings.exclude
        items = {*settings.list, *settings.tensor_list, *settings.exclude}
        self._regexes = {item: regex for item in items if (regex := regex_of(item)) is not None}
        #: there is no scope, or it has begun and not ended
        self.is_open = not settings.scope
        self._unseen = {*settings.scope, *items}
        #: whether any name filter is set; if not, callers skip the check
        self.is_active = bool(settings.scope or settings.list or settings.exclude)

    def begin(self, call: Call, backward: bool = False) -> bool:
        """Return whether the call that begins now is recorded."""
        name = call.name(backward)
        if self._first:
            if name == self._first:
                self.is_open = True
                self._unseen.discard(name)
            if not self.is_open:
                return False
        return self._is_chosen(call, backward)

    def may_record_backward(self, call: Call) -> bool:
        """Return False if the backward of this call is surely not recorded. It has not begun yet."""
        return bool(self._first) or self._is_chosen(call, backward=True)

    def end(self, name: str) -> None:
        """Note that a call has ended: after the last name of ``scope`` nothing more is recorded."""
        if name == self._last and self.is_open:
            self.is_open = False
            self._unseen.discard(name)

    def keeps_arrays(self, name: str) -> bool:
        """Return whether ``tensor_list`` asks for the arrays of this entry."""
        return self._matches(name, self._tensor_list)

    def unmatched(self) -> list[str]:
        """Return the names of scope, list, exclude and tensor_list that matched no call, sorted."""
        return sorted(self._unseen)

    def _is_chosen(self, call: Call, backward: bool) -> bool:
        if self._exclude and self._is_within(call, backward, self._exclude):
            return False
        return not self._list or self._is_within(call, backward, self._list)

    def _is_within(self, call: Call, backward: bool, wanted: tuple[str, ...]) -> bool:
        around: Call | None = call
        while around is not None:
            if self._matches(around.name(backward), wanted):
                return True
            around = around.cell
        return False

    def _matches(self, name: str, wanted: tuple[str, ...]) -> bool:
        regexes = self._regexes
        hits = [item for item in wanted if (regexes[item].search(name) if item in regexes else item in name)]
        self._unseen.difference_update(hits)
        return bool(hits)

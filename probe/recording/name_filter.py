# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Which calls are recorded: the settings scope and list, as msprobe's users know them."""

from __future__ import annotations

from typing import Protocol

from probe.config.settings import Settings
from probe.config.validators import regex_of


class Place(Protocol):
    """Where a call stands: its names and the Cell call around it."""

    forward: str
    backward: str

    @property
    def cell(self) -> Place | None:
        """The call of the Cell around it."""


class NameFilter:
    """Decides by name, for one step.

    ``scope`` is a stretch of time: it opens when the first name begins and closes when the second has ended.
    ``list`` matches by substring or regular expression; a Cell that matches opens everything that runs inside it, and
    one that ``exclude`` matches closes it.
    """

    def __init__(self, settings: Settings) -> None:
        self._first: str | None = None
        self._last: str | None = None
        if settings.scope:
            self._first, self._last = settings.scope
        self._list = settings.list
        self._tensor_list = settings.tensor_list
        self._exclude = settings.exclude
        items = {*settings.list, *settings.tensor_list, *settings.exclude}
        self._regexes = {item: regex for item in items if (regex := regex_of(item)) is not None}
        #: no scope, or inside it
        self.open = not settings.scope
        self._unseen = {*settings.scope, *items}
        #: False while every call is recorded whatever its name: then nobody needs to ask
        self.narrow = bool(settings.scope or settings.list or settings.exclude)

    def begins(self, place: Place, backward: bool = False) -> bool:
        """Return whether the call that begins now is recorded."""
        name = place.backward if backward else place.forward
        if self._first is not None:
            if name == self._first:
                self.open = True
                self._unseen.discard(name)
            if not self.open:
                return False
        return self._chosen(place, backward)

    def may_follow(self, place: Place) -> bool:
        """Return whether the backward of this call may be recorded, as far as can be told before it begins."""
        return self._first is not None or self._chosen(place, backward=True)

    def ends(self, name: str) -> None:
        """Note that a call has ended: after the last name of ``scope`` nothing more is recorded."""
        if name == self._last and self.open:
            self.open = False
            self._unseen.discard(name)

    def keeps_arrays(self, name: str) -> bool:
        """Return whether ``tensor_list`` asks for the arrays of this entry."""
        return self._matches(name, self._tensor_list)

    def unmatched(self) -> list[str]:
        """Return the names of scope, list and tensor_list that met no call, sorted."""
        return sorted(self._unseen)

    def _chosen(self, place: Place, backward: bool) -> bool:
        if self._exclude and self._within(place, backward, self._exclude):
            return False
        return not self._list or self._within(place, backward, self._list)

    def _within(self, place: Place, backward: bool, wanted: tuple[str, ...]) -> bool:
        around: Place | None = place
        while around is not None:
            if self._matches(around.backward if backward else around.forward, wanted):
                return True
            around = around.cell
        return False

    def _matches(self, name: str, wanted: tuple[str, ...]) -> bool:
        regexes = self._regexes
        hits = [item for item in wanted if (regexes[item].search(name) if item in regexes else item in name)]
        self._unseen.difference_update(hits)
        return bool(hits)

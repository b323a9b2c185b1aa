# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Watches listed functions: MindSpore's own by their code, all others by a patch of the attribute."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from probe.capture.code_patches import can_be_replaced
from probe.capture.patches import Patch
from probe.capture.pynative.apis import ApiHooks
from probe.capture.pynative.collectives import CollectiveHooks, is_collective
from probe.capture.pynative.comm_handles import CommHandleTracker
from probe.capture.pynative.context import CaptureContext
from probe.capture.support_ops import SupportedApi


class ListedFunctions:
    """Records the calls of listed functions.

    A function's code knows one key, that of the first API in the list. Another key of the same function, such as
    ``Mint.abs`` of ``ops.abs``, has a patch of the attribute. So have C methods of Tensor, which have no code, and the
    user's functions in places of MindSpore's. Without ``by_code``, all have patches of attributes.
    """

    def __init__(
        self,
        context: CaptureContext,
        handles: CommHandleTracker,
        listed: Iterable[SupportedApi],
        by_code: bool,
        **flags: bool,
    ) -> None:
        self._apis, self._collectives = ApiHooks(context, **flags), CollectiveHooks(context, handles)
        self._codes = context.codes if by_code else None
        self._patches: list[Patch] = []
        #: (names of a module or class, name, its value there, API), for each API whose calls are recorded by code
        self._places: list[tuple[Mapping[str, Any], str, Any, SupportedApi]] = []
        #: for those of them that have another value now
        self._replaced: dict[tuple[int, str], Patch] = {}
        gates = {hooks: context.codes.gate(hooks.call) for hooks in (self._apis, self._collectives) if by_code}
        for api in listed:
            names: Mapping[str, Any] = vars(api.owner)
            value = names.get(api.name)
            function: Any = value.__func__ if isinstance(value, staticmethod) else value
            if (
                by_code
                and can_be_replaced(function)
                and context.codes.add(function, api.key, gates[self._hooks(api)]) == api.key
            ):
                self._places.append((names, api.name, value, api))
            else:
                self._patches.append(self._patch(api))

    def install(self) -> None:
        """Begin to record. The user may have put other functions into the places since the last time."""
        if self._codes is not None:
            self._codes.install()
        for names, name, value, api in self._places:
            if names.get(name) is not value:
                place = id(api.owner), name
                if place not in self._replaced:
                    self._replaced[place] = self._patch(api)
                self._replaced[place].install()
        for patch in self._patches:
            patch.install()

    def remove(self) -> None:
        """Restore the originals."""
        for patch in reversed(self._patches):
            patch.remove()
        for patch in self._replaced.values():
            patch.remove()
        if self._codes is not None:
            self._codes.remove()

    def _hooks(self, api: SupportedApi) -> ApiHooks:
        return self._collectives if is_collective(api.key) else self._apis

    def _patch(self, api: SupportedApi) -> Patch:
        return Patch(api.owner, api.name, functools.partial(self._hooks(api).wrap, api.key))

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One patch of a method of MindSpore for all who listen to its calls.

Two patches of one method could not be removed in any order. Listeners can.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from probe.capture.patches import HookGroup, Patch, around


class Listener(NamedTuple):
    """Runs ``run(original, *args, **kwargs)`` around an event, between ``install`` and ``remove``."""

    event: Event
    run: Callable[..., Any]

    def install(self) -> None:
        """Begin to listen."""
        self.event.tell([*self.event.listeners, self])

    def remove(self) -> None:
        """Listen no longer."""
        self.event.tell([other for other in self.event.listeners if other != self])


class Event:
    """A method of MindSpore that runs, seen by one patch while somebody listens.

    The first listener is the outermost. One that comes while the method runs hears of it too, inside of the others:
    `probe run` begins a step with an update, which the dump of this step records.
    """

    def __init__(self, owners: Iterable[type], name: str) -> None:
        self._patches = HookGroup(
            Patch(owner, name, around(functools.partial(self._run, ()))) for owner in owners
        )
        self.listeners: list[Listener] = []

    def tell(self, listeners: list[Listener]) -> None:
        """Tell these listeners from now on."""
        self.listeners = listeners
        (self._patches.install if listeners else self._patches.remove)()

    def _run(
        self, told: tuple[Listener, ...], original: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        for listener in self.listeners:
            if listener not in told:
                return listener.run(
                    functools.partial(self._run, (*told, listener), original), *args, **kwargs
                )
        return original(*args, **kwargs)

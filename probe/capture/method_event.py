# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One patch of a method of MindSpore for all who listen to its calls.

Two patches of one method could not be removed in any order. Listeners can.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, NamedTuple

from probe.capture.code_patches import CodePatches, can_be_replaced
from probe.capture.patches import HookGroup, Hooks, Patch, around


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
        self._patches: Hooks = HookGroup(
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


class _Outermost(threading.local):
    """The thread's mark that a function of the event runs: those inside of it are not told."""

    in_recorded_call = False


class FunctionEvent(Event):
    """The calls of some functions of a layer above MindSpore, whose code is replaced while somebody listens.

    They may be held elsewhere, as a scheduler holds the step of its optimizer: a patch of the class would not be seen.
    """

    def __init__(self, functions: Callable[[], Iterable[FunctionType]]) -> None:
        super().__init__((), "")
        self._functions = functions
        self._codes = CodePatches(_Outermost())
        self._gate = self._codes.gate(self._called)
        self._patches = self._codes

    def tell(self, listeners: list[Listener]) -> None:
        """Tell these listeners from now on. The functions are looked up again: there may be new classes."""
        for function in self._functions() if listeners else ():
            if can_be_replaced(function):
                self._codes.add(function, "", self._gate)
        super().tell(listeners)

    def _called(
        self, key: str, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return self._run((), original, *args, **kwargs)

# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The states of a session, and how they decide whether a method runs."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from probe.errors import UsageError


class State(enum.Enum):
    """The states of a session."""

    #: no step is open
    IDLE = "idle"
    #: a step is open, hooks are installed, calls are recorded
    RECORDING = "recording"
    #: a step is open, hooks are removed: between stop() and step()
    PAUSED = "paused"
    #: a forked child, or msrun's scheduler: nothing is ever recorded
    DETACHED = "detached"
    #: close() was called
    CLOSED = "closed"


Method = TypeVar("Method", bound=Callable[..., Any])


def serialized(method: Method) -> Method:
    """Serialize calls of a method. In a detached process it does nothing; after ``close`` it raises."""

    @functools.wraps(method)
    def run(self: Any, *args: Any) -> Any:
        with self._lock:
            if self.state is State.CLOSED:
                raise UsageError("this PrecisionDebugger is closed. Make a new one: PrecisionDebugger(config_path=...)")
            return None if self.state is State.DETACHED else method(self, *args)

    return cast(Method, run)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The process of a run: it becomes the program, under the monitor of probe and one change."""

from __future__ import annotations

import functools
import json
import logging
import sys
from collections.abc import Callable
from typing import Any

from probe import debugger
from probe.capture.patches import HookGroup, Patch
from probe.config.config_file import ConfigFile
from probe.intervention.change import Change
from probe.launch.launcher import Launcher
from probe.launch.program import Program
from probe.launch.training_change import TrainingChange

_log = logging.getLogger("probe")


class SilentSession:
    """Answers the program's own debuggers: they record nothing."""

    def estimate(self) -> int:
        """Return that a step takes no space."""
        return 0

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None


class SilentMonitor(SilentSession):
    """Answers the program's own TrainerMon of msprobe."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take all arguments."""


class SilentDebuggers:
    """Lets the program's own debuggers, of probe or msprobe, do nothing; see ``OwnDebuggers``."""

    is_made = False

    def watch(self, hooks: HookGroup) -> None:
        """Put a silent session in the place of the program's own."""
        silent = SilentSession()
        hooks.add(Patch(debugger, "session_of_process", lambda _: lambda: silent))
        hooks.add(Patch(debugger.PrecisionDebugger, "__init__", lambda _: _take_nothing))
        hooks.add(Patch(debugger.PrecisionDebugger, "close", lambda _: lambda: None))

    def served_classes(self) -> dict[str, type]:
        """Return the classes that a program gets which imports msprobe."""
        return {"PrecisionDebugger": debugger.PrecisionDebugger, "TrainerMon": SilentMonitor}


def _take_nothing(made: debugger.PrecisionDebugger, *args: Any, **kwargs: Any) -> None:
    """Stand in the place of ``PrecisionDebugger.__init__``."""


def begin(text: str) -> Launcher:
    """Begin to watch this process, or one that the program spawns. ``text`` is the JSON that ``Runs`` has made."""
    given = json.loads(text)
    source = ConfigFile(None, dump_path=given["folder"], **given["settings"])
    said = given["change"]["said"]
    if said:
        source.header["changed"] = said
        _log.warning(
            "THIS TRAINING IS CHANGED: %s. Its losses are not those of the training.", said
        )
    program = Program(*given["program"])
    new_change = functools.partial(_new_change, given)
    launcher = Launcher(program, source, given["at_model"], SilentDebuggers(), new_change)
    joining = f"from probe.intervention.child import begin; begin({text!r})"
    launcher.install(given["as_msprobe"], joining)
    return launcher


def _new_change(given: dict[str, Any], hooks: HookGroup) -> TrainingChange:
    """Return the change of the run, once the program has imported MindSpore."""
    from probe.intervention.changing import Intervention
    from probe.intervention.faults import Planted

    change = Change(**{key: _tuples(value) for key, value in given["change"].items()})
    if change.seed is not None:
        _reseed(hooks, change.seed)
    return (
        Planted(change) if change.fault else Intervention(change, given["calls"], given["folder"])
    )


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _reseed(hooks: HookGroup, seed: int) -> None:
    """Take a seed in place of each one of the program."""
    import random

    import mindspore
    import numpy as np

    from probe.seeding import seed_all

    seed_all(seed)
    for owner, name in (
        (random, "seed"),
        (np.random, "seed"),
        (mindspore, "set_seed"),
        (mindspore, "manual_seed"),
    ):
        hooks.add(Patch(owner, name, lambda original: lambda *args, **kwargs: original(seed)))


if __name__ == "__main__":
    begin(sys.argv[1]).run()  # becomes the program

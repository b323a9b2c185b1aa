# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The process of a run: it becomes the program, under the monitor of probe and one change."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from typing import Any

from probe.capture.patches import HookGroup, Patch
from probe.config.settings import ConfigFile
from probe.debugger import PrecisionDebugger
from probe.intervention.change import Change
from probe.launch.launcher import Launcher
from probe.launch.perturb import Perturbation
from probe.launch.program import Program

_log = logging.getLogger("probe")


class _Silent:
    """Stands for the session of the program's own debugger: it takes everything, and does nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None


class _Changed(PrecisionDebugger):
    """The debugger of the run: each of its steps is changed."""

    change: Any = None

    @classmethod
    def _session_of_process(cls) -> Any:
        return cls._living_session()

    def start(self, model: Any = None, *others: Any) -> None:  # type: ignore[override]
        """Begin a step, and the change in it."""
        super().start(model, *others)
        self.change.open(self._session._parts.models)

    def stop(self) -> None:  # type: ignore[override]
        """End the change, and what watches it."""
        self.change.pause()
        super().stop()

    def step(self) -> None:  # type: ignore[override]
        """End the step."""
        if self.change.close():
            self._session.ask(lambda recording: setattr(recording, "steps", 2))
        super().step()


class _Launcher(Launcher):
    """Runs a program under a change. Its own debuggers, of probe or msprobe, do nothing."""

    def begin(self, given: dict[str, Any], joining: str) -> None:
        """Begin to watch this process, under the change that is given."""
        self._given = given
        self.install(given["as_msprobe"], joining)
        silent = _Silent()
        self._hooks.add(
            Patch(PrecisionDebugger, "_session_of_process", lambda original: lambda: silent)
        )
        self._hooks.add(Patch(PrecisionDebugger, "close", lambda original: lambda: None))

    def _watch(self) -> None:
        from probe.intervention.changing import Intervention
        from probe.intervention.faults import Planted

        change = Change(**{key: _tuples(value) for key, value in self._given["change"].items()})
        if change.seed is not None:
            _reseed(self._hooks, change.seed)
        kind = Planted if change.fault else Intervention
        self._perturbation = kind(change, self._given["calls"], self._given["folder"])  # type: ignore[assignment]
        super()._watch()

    def _new_debugger(self) -> PrecisionDebugger:
        self._debugger = made = _Changed.of(self._source)
        made.change = self._perturbation  # type: ignore[attr-defined]
        return made

    def _served_classes(self) -> dict[str, type]:
        return {"PrecisionDebugger": PrecisionDebugger, "TrainerMon": _Silent}

    def _refuse(
        self, original: Callable[..., Any], debugger: PrecisionDebugger, *args: Any, **kwargs: Any
    ) -> None:
        debugger._session = _Silent()  # type: ignore[assignment]


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
    launcher = _Launcher(
        Program(*given["program"]), source, given["at_model"], True, Perturbation("", source)
    )
    launcher.begin(given, f"from probe.intervention.child import begin; begin({text!r})")
    return launcher


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

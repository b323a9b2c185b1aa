# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The process of a run: it becomes the program, under the monitor of probe and one change."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from typing import Any

from probe.capture.patches import Patch
from probe.config.settings import ConfigFile
from probe.debugger import PrecisionDebugger
from probe.intervention.change import Change
from probe.launch.launcher import AwaitedImport, Launcher
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
            self._session.ask(lambda recording: recording.dump_next(2))
        super().step()


class _Launcher(Launcher):
    """Runs a program under a change. Its own debuggers, of probe or msprobe, do nothing."""

    def install(self, as_msprobe: bool, joining: str = "") -> None:
        """Begin; see ``Launcher``."""
        super().install(as_msprobe, joining)
        silent = _Silent()
        self._hooks.add(Patch(PrecisionDebugger, "_session_of_process", lambda original: lambda: silent))
        self._hooks.add(Patch(PrecisionDebugger, "close", lambda original: lambda: None))

    def _new_debugger(self) -> PrecisionDebugger:
        self._debugger = made = _Changed.of(self._source)
        made.change = self._perturbation  # type: ignore[attr-defined]
        return made

    def _served_classes(self) -> dict[str, type]:
        return {"PrecisionDebugger": PrecisionDebugger, "TrainerMon": _Silent}

    def _refuse(self, original: Callable[..., Any], debugger: PrecisionDebugger, *args: Any, **kwargs: Any) -> None:
        debugger._session = _Silent()  # type: ignore[assignment]


class _Late:
    """Makes the change when MindSpore is there; see ``Intervention``."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given, self._made = given, None

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            change = Change(**{key: _tuples(value) for key, value in self._given["change"].items()})
            if change.fault:
                from probe.intervention.faults import Planted as Kind
            else:
                from probe.intervention.changing import Intervention as Kind  # type: ignore[assignment]
            self._made = Kind(change, self._given["calls"], self._given["folder"])
        return getattr(self._made, name)


def main(text: str) -> None:
    """Run a program in this process. ``text`` is the JSON that ``Runs`` has made."""
    given = json.loads(text)
    source = ConfigFile(None, task="monitor", dump_path=given["folder"], quiet=True, **given["settings"])
    said, seed = given["change"]["said"], given["change"]["seed"]
    if said:
        source.header["changed"] = said
        _log.warning("THIS TRAINING IS CHANGED: %s. Its losses are not those of the training.", said)
    launcher = _Launcher(Program(*given["program"]), source, given["at_model"], True, _Late(given))  # type: ignore[arg-type]
    if seed is not None:
        launcher._hooks.add(AwaitedImport("mindspore", lambda: _seed(launcher, seed)))
    launcher.install(given["as_msprobe"], f"from probe.intervention.child import main; main({text!r})")
    launcher.run()


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _seed(launcher: Launcher, seed: int) -> None:
    """Take the seed that the user gives in place of each one of the program."""
    import random

    import mindspore
    import numpy as np

    from probe.seeding import seed_all

    seed_all(seed)
    for owner, name in ((random, "seed"), (np.random, "seed"), (mindspore, "set_seed"), (mindspore, "manual_seed")):
        launcher._hooks.add(Patch(owner, name, lambda original: lambda *args, **kwargs: original(seed)))


if __name__ == "__main__":
    main(sys.argv[1])

# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The process that runs checks. Only it imports MindSpore; it tells each finding at once, and may crash or hang."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from probe.doctor.bench import FAILED, Bench, CheckResult, told
from probe.doctor.checks import CHECKS, Check
from probe.process.isolated import Parent

#: tells that a check begins, or its finding
Tell = Callable[[dict[str, Any]], None]


def main(parent: Parent) -> None:
    """Run the checks that the task names, and tell each finding."""
    task = parent.task
    chosen = [check for check in CHECKS if check.name in task["checks"]]
    run_checks(chosen, Bench(task["device"], task["chosen"], task["folder"]), parent.tell)


class _Running:
    """A check that runs.

    Args:
        tell: receives ``{"name": …, "begins": True}``, and the finding.
        name: the name of the check.
    """

    def __init__(self, tell: Tell, name: str) -> None:
        self._tell, self._name, self._began = tell, name, time.monotonic()
        tell({"name": name, "begins": True})

    def ends(self, finding: CheckResult, device: str = "") -> None:
        """Tell the finding."""
        seconds = round(time.monotonic() - self._began, 2)
        self._tell({"name": self._name, "seconds": seconds, "device": device, **asdict(finding)})

    def raises(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        """Tell an error that ends the process; Python calls it in place of a traceback."""
        self.ends(CheckResult(FAILED, told(error)))


def run_checks(checks: Iterable[Check], bench: Bench, tell: Tell) -> None:
    """Run checks until one fails, as it may have spoiled this process. An error that a check raises ends the process.

    Args:
        checks: the checks.
        bench: the place that they work at.
        tell: see ``_Running``.
    """
    has_device = False
    for check in checks:
        running = _Running(tell, check.name)
        sys.excepthook = running.raises
        if not has_device and check.name != "versions":
            bench, has_device = set_up(bench), True
        finding = check.function(bench)
        running.ends(finding, bench.device)
        if finding.result == FAILED:
            return


def set_up(bench: Bench) -> Bench:
    """Select PyNative mode and the device, and return the bench with the name of the device."""
    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    if bench.device:
        mindspore.set_device(bench.device)
    return Bench(str(mindspore.get_context("device_target")), bench.chosen, bench.folder)

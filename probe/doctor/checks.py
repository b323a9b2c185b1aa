# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The table of checks, in the order in which they run, and the process that runs them.

Only this process imports MindSpore, and it may crash or hang.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from probe.doctor.bench import FAILED, Bench, CheckResult, told


@dataclass(frozen=True)
class DoctorCheck:
    """One check."""

    name: str
    place: str  # its function below ``probe.doctor``; the process that runs it imports it
    is_needed: bool = False  # whether the checks after it cannot run without it

    @property
    def function(self) -> Callable[[Bench], CheckResult]:
        """The function that does it."""
        found: Callable[[Bench], CheckResult] = pkgutil.resolve_name(f"probe.doctor.{self.place}")
        return found


CHECKS = (
    DoctorCheck("versions", "environment:versions", is_needed=True),
    DoctorCheck("device", "environment:device", is_needed=True),
    DoctorCheck("folder", "environment:folder"),
    DoctorCheck("private names", "environment:names"),
    DoctorCheck("memory", "memory:memory"),
    DoctorCheck("calls", "calls:forward_entries"),
    DoctorCheck("gradients", "calls:gradients"),
    DoctorCheck("compiled calls", "calls:compiled"),
    DoctorCheck("bits", "training:bits"),
    DoctorCheck("numbers", "memory:numbers"),
    DoctorCheck("launches", "counting:launches"),
    DoctorCheck("two processes", "environment:two_processes"),
    DoctorCheck("time", "training:time_per_call"),
)


def main(task: dict[str, Any], requests: Iterator[str], tell: Callable[[Any], None]) -> None:
    """Run the checks that are requested by name. An error that a check raises ends the process."""
    sys.excepthook = lambda kind, error, trace: tell(asdict(CheckResult(FAILED, told(error))))
    checks, bench, has_device = {check.name: check for check in CHECKS}, Bench(**task), False
    for name in requests:
        if not has_device and name != "versions":
            bench, has_device = replace(bench, device=set_device(bench.device)), True
        tell({"device": bench.device, **asdict(checks[name].function(bench))})


def set_device(name: str) -> str:
    """Select PyNative mode and a device, and return the name of the device; "" leaves the choice to MindSpore."""
    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    if name:
        mindspore.set_device(name)
    return str(mindspore.get_context("device_target"))

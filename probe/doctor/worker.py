# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The process that runs checks. Only it imports MindSpore, and it may crash or hang."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

from probe.doctor.bench import FAILED, Bench, CheckResult, told
from probe.doctor.checks import CHECKS


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

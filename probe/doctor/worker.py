# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The process that runs checks. Only it imports MindSpore; it tells each finding at once, and may crash or hang."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from probe.doctor.checks import CHECKS, Check
from probe.doctor.finding import FAILED, Bench, Finding

#: tells that a check begins, or its finding
Tell = Callable[[dict[str, Any]], None]


def main() -> None:
    """Run the checks that the first argument names. Findings are lines of JSON for the file descriptor it names."""
    faulthandler.enable()
    task = json.loads(sys.argv[1])
    stream = os.fdopen(task["stream"], "w", encoding="utf-8")

    def tell(message: dict[str, Any]) -> None:
        print(json.dumps(message, default=str), file=stream, flush=True)

    chosen = [check for check in CHECKS if check.name in task["checks"]]
    run_checks(chosen, Bench(task["device"], task["chosen"], task["folder"]), tell)
    stream.close()
    os._exit(0)  # a library that fails at exit is no finding


def run_checks(checks: Iterable[Check], bench: Bench, tell: Tell) -> None:
    """Run checks in this process until one fails: it may have spoiled the process."""
    is_set_up = False
    for check in checks:
        tell({"name": check.name, "begins": True})
        began = time.monotonic()
        try:
            if not is_set_up and check.name != "versions":
                bench, is_set_up = set_up(bench), True
            finding = check.function(bench)
        except Exception as error:  # this is the finding
            finding = Finding(FAILED, f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:240]}")
        seconds = round(time.monotonic() - began, 2)
        tell({"name": check.name, "seconds": seconds, "device": bench.device, **asdict(finding)})
        if finding.result == FAILED:
            return


def set_up(bench: Bench) -> Bench:
    """Select PyNative mode and the device, and return the bench with the name of the device."""
    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    if bench.device:
        mindspore.set_device(bench.device)
    return Bench(str(mindspore.get_context("device_target")), bench.chosen, bench.folder)

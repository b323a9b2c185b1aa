# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The command ``probe doctor``: a line for each check, or one JSON document."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from probe import __version__
from probe.config.messages import nearest
from probe.doctor.bench import FAILED, NOT_RUN, OK, WARNING
from probe.doctor.checks import CHECKS
from probe.doctor.runner import Runner

_DEVICES = ("CPU", "GPU", "Ascend")
#: seconds; the first operations on a device may compile for long
_LIMIT = 120.0
_FORMAT = 1


def add_doctor(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("doctor", help="check that probe works with this MindSpore on this machine")
    parser.description = (
        "Check that probe works with this MindSpore, on this machine and device. It takes less than a minute, "
        "and prints a line for each check. Paste the text into an issue: it names no folder, host or user."
    )
    parser.add_argument("--device", type=_device, help="CPU, GPU or Ascend; default: MindSpore's choice")
    parser.add_argument("--folder", default="", metavar="DIR", help="write the files of the checks below this folder")
    parser.add_argument(
        "--limit", type=_seconds, default=_LIMIT, metavar="SECONDS", help="the longest time of a check; default: 120"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document, with more details")
    parser.set_defaults(run=_run)


def _device(name: str) -> str:
    if name in _DEVICES:
        return name
    hint = nearest(name.lower(), [device.lower() for device in _DEVICES])
    guess = next((f" Did you mean {device!r}?" for device in _DEVICES if device.lower() == hint), "")
    raise argparse.ArgumentTypeError(f"{name!r} is not allowed. Allowed: {', '.join(_DEVICES)}.{guess}")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if 0 < seconds < 1e6:
        return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is not allowed. Allowed: a number of seconds above 0.")


def _run(given: argparse.Namespace) -> int:
    began, rows = time.monotonic(), []
    width = max(len(check.name) for check in CHECKS)
    if not given.json:
        print(f"probe doctor {__version__}, on {given.device or 'the device that MindSpore chooses'}", flush=True)
    for row in Runner(given.device or "", given.folder, given.limit).rows(CHECKS):
        rows.append(row)
        if not given.json:
            print(f"{row['result']:8} {row['name']:{width}}  {row['fact']}", flush=True)
    counts = {result: sum(row["result"] == result for row in rows) for result in (OK, WARNING, FAILED, NOT_RUN)}
    seconds = round(time.monotonic() - began, 1)
    status = 1 if counts[FAILED] else 0
    if given.json:
        device = next((row["device"] for row in rows if row["device"]), given.device or "")
        summary = {"tool": "probe doctor", "format": _FORMAT, "probe": __version__, "device": device, "status": status}
        json.dump({**summary, "seconds": seconds, "checks": rows}, sys.stdout, indent=1, ensure_ascii=False)
        print()
    else:
        told = ", ".join(f"{count} {result}" for result, count in counts.items() if count)
        print(f"{told}, in {seconds:.0f} s")
    return status

# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The check of two processes that record into one ``dump_path``."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from probe.doctor.bench import FAILED, OK, Bench, CheckResult, Entries, RecordedDump, read_entries

#: the second process: it records other calls into the same dump_path, and prints how that ended
_SECOND = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
import mindspore
mindspore.set_device("CPU")
from mindspore import ops
from probe.debugger import PrecisionDebugger
from probe.errors import UsageError
debugger = PrecisionDebugger(sys.argv[2])
try:
    debugger.start()
    ops.tanh(mindspore.Tensor([1.0, 2.0], mindspore.float32))
    debugger.stop()
    debugger.step()
    print("recorded")
except UsageError:
    print("refused")
"""
_OURS, _OTHERS = "Functional.relu.0.forward", "Functional.tanh.0.forward"
_LIMIT = 100


def two_processes(bench: Bench) -> CheckResult:
    """Record a step; before it ends, let another process record into the same ``dump_path``."""
    import mindspore
    from mindspore import ops

    with bench.dump("shared", level="L1") as dump:
        dump.debugger.start()
        ops.relu(mindspore.Tensor([1.0, 2.0], mindspore.float32))
        dump.debugger.stop()
        before = read_entries(os.path.join(bench.folder, "shared"))
        said = _run_second(bench.settings_file("shared", level="L1"))
        dump.debugger.step()
    if not before:
        return CheckResult(FAILED, f"nothing was recorded: {dump.error or 'no error told'}")
    others = {place: read_entries(os.path.join(bench.folder, place)) for place in _beside(bench.folder)}
    return _judge(said, dump, others)


def _judge(said: str, first: RecordedDump, others: dict[str, Entries]) -> CheckResult:
    if first.error or list(first.data) != [_OURS]:
        found = first.error or f"it holds {', '.join(first.data) or 'nothing'}"
        return CheckResult(FAILED, f"the dump of the first process was damaged by the second: {found}")
    if said == "refused":
        return CheckResult(OK, "a second process is refused while the first records; the dump of the first is complete")
    if said == "recorded" and any(list(entries) == [_OTHERS] for entries in others.values()):
        return CheckResult(OK, "a second process writes beside the first; both dumps are complete")
    return CheckResult(FAILED, f"the second process has no dump, and was not refused: {said or 'it said nothing'}")


def _beside(folder: str) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith("shared-")]


def _run_second(settings: str) -> str:
    """Return the last line that the second process said."""
    command = [sys.executable, "-c", _SECOND, json.dumps(sys.path), settings]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        return f"it took more than {_LIMIT} s"
    said = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return said[-1] if said else ""

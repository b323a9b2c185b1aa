# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The check of two processes that record into one ``dump_path``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from probe.doctor.bench import FAILED, OK, Bench, CheckResult, Entries, RecordedDump, read_entries
from probe.errors import UsageError
from probe.process.isolated import EndedError, Isolated

#: the function of the second process
_SECOND = "probe.doctor.sharing:record"
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
        said = _run_second(bench.settings_file("shared", level="L1"), bench.folder)
        dump.debugger.step()
    if not before:
        return CheckResult(FAILED, f"nothing was recorded: {dump.error or 'no error told'}")
    beside = [name for name in os.listdir(bench.folder) if name.startswith("shared-")]
    return _judge(said, dump, {name: read_entries(os.path.join(bench.folder, name)) for name in beside})


def _judge(said: str, first: RecordedDump, others: dict[str, Entries]) -> CheckResult:
    if first.error or list(first.data) != [_OURS]:
        found = first.error or f"it holds {', '.join(first.data) or 'nothing'}"
        return CheckResult(FAILED, f"the dump of the first process was damaged by the second: {found}")
    if said == "refused":
        return CheckResult(OK, "a second process is refused while the first records; the dump of the first is complete")
    if said == "recorded" and any(list(entries) == [_OTHERS] for entries in others.values()):
        return CheckResult(OK, "a second process writes beside the first; both dumps are complete")
    return CheckResult(FAILED, f"the second process has no dump, and was not refused: {said or 'it said nothing'}")


def _run_second(settings: str, folder: str) -> str:
    """Return the end of a second process that records other calls into the same ``dump_path``."""
    with contextlib.closing(Isolated(_SECOND, {"settings": settings}, folder)) as second:
        try:
            return str(second.receive(_LIMIT))
        except TimeoutError:
            return f"it took more than {_LIMIT} s"
        except EndedError as ended:
            return ended.words


def record(task: dict[str, str], requests: Iterator[Any], tell: Callable[[str], None]) -> None:
    """Record a call with the settings of the task, and tell "recorded" or "refused"."""
    import mindspore
    from mindspore import ops

    from probe.debugger import PrecisionDebugger

    mindspore.set_device("CPU")
    debugger = PrecisionDebugger(task["settings"])
    try:
        debugger.start()
        ops.tanh(mindspore.Tensor([1.0, 2.0], mindspore.float32))
        debugger.stop()
        debugger.step()
        tell("recorded")
    except UsageError:
        tell("refused")

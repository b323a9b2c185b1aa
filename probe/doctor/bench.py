# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The result of a check, the place that it works at, and the table of all in the order in which they run.

Only the process that runs them imports MindSpore, and it may crash or hang.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pkgutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from probe.findings.sentence import Sentence, say
from probe.findings.system import foreign

if TYPE_CHECKING:
    from probe.debugger import PrecisionDebugger

OK = "ok"
WARNING = "warning"
FAILED = "failed"
NOT_RUN = "not run"

Entries = dict[str, Any]

_LONGEST = 240  # characters of the message of an error


@dataclass(frozen=True)
class CheckResult:
    """The result of a check."""

    result: str  # ``OK``, ``WARNING``, ``FAILED`` or ``NOT_RUN``
    fact: Sentence  # the fact, in one line
    details: dict[str, Any] = field(default_factory=dict)  # numbers and names for ``--json``


def told(error: BaseException) -> Sentence:
    """Return the kind of an error and the first line of its message, as MindSpore's have many."""
    message = str(error).strip().partition("\n")[0]
    return foreign(
        f"{type(error).__name__}: {textwrap.shorten(message, _LONGEST, placeholder=' …')}"
    )


class RecordedDump:
    """A dump that a check records."""

    def __init__(self, path: str, debugger: PrecisionDebugger) -> None:
        self._path = path
        self.debugger = debugger
        self.result: Any = None  # that of the recorded function; see ``Bench.record``
        self.data: Entries = {}  # the entries of the first step by name, when the dump is complete
        self.error = ""  # the first error of probe, or ""

    def complete(self, logged: Sequence[str]) -> None:
        """Close the debugger, and read the dump."""
        self.debugger.close()
        self.data = read_entries(self._path)
        self.error = read_error(self._path) or next(iter(logged), "")

    def incomplete(self, count: int) -> CheckResult | None:
        """Return the failure where other than so many entries were recorded, or with an error; else None."""
        if not self.error and len(self.data) == count:
            return None
        said = say("doctor.incomplete", count=len(self.data), all=count, reason=self.reason)
        return CheckResult(FAILED, said)

    @property
    def reason(self) -> Sentence:
        """The first error of probe, or that it told none."""
        return foreign(self.error) if self.error else say("doctor.no_error")


@dataclass(frozen=True)
class Bench:
    """The place that the checks work at."""

    device: str  # the name of the device, as MindSpore spells it
    chosen: str  # the folder that the user has chosen, or ""
    folder: str  # an empty folder for the files of the checks

    @contextlib.contextmanager
    def dump(self, name: str, **settings: Any) -> Iterator[RecordedDump]:
        """Make a debugger with these settings, those of the task too, and read its dump after the block."""
        from probe.debugger import PrecisionDebugger

        log = logging.getLogger("probe")
        errors = _Errors()
        log.addHandler(errors)
        with contextlib.ExitStack() as after:
            after.callback(log.removeHandler, errors)
            debugger = PrecisionDebugger(self.settings_file(name, **settings))
            dump = RecordedDump(os.path.join(self.folder, name), debugger)
            after.callback(dump.complete, errors.texts)
            yield dump

    def record(
        self, name: str, function: Callable[[], Any], model: Any = None, **settings: Any
    ) -> RecordedDump:
        """Run a function in a recorded step; see ``dump``."""
        with self.dump(name, **settings) as dump:
            dump.debugger.start(model)
            dump.result = function()
            dump.debugger.stop()
            dump.debugger.step()
        return dump

    def settings_file(self, name: str, **settings: Any) -> str:
        """Write the settings of a dump into a file, and return its path."""
        path = os.path.join(self.folder, f"{name}.json")
        common = {"task": "statistics", "level": "mix", "rank": [], "step": []}
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**common, "dump_path": os.path.join(self.folder, name), **settings}, file)
        return path


class _Errors(logging.Handler):
    """Gathers the errors that probe logs, as after an error nothing is recorded."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first line of a message."""
        self.texts.append(record.getMessage().partition("\n")[0])


def read_entries(path: str) -> Entries:
    """Return the entries of the first step of a dump; none if there is no dump."""
    for name in ("dump.json", "debug.json"):
        file = os.path.join(path, "step0", "rank", name)
        if os.path.exists(file):
            with open(file, encoding="utf-8") as opened:
                return dict(json.load(opened)["data"])
    return {}


def read_error(path: str) -> str:
    """Return the first error of probe in the first step of a dump, or ""."""
    file = os.path.join(path, "step0", "rank", "dump_error_info.log")
    if not os.path.exists(file):
        return ""
    with open(file, encoding="utf-8", errors="replace") as opened:
        lines = [line.strip() for line in opened]
    return next(
        (line for line in lines if "Error" in line and not line.startswith("File")),
        lines[0] if lines else "",
    )


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
    DoctorCheck("launches", "calls:launches"),
    DoctorCheck("two processes", "environment:two_processes"),
    DoctorCheck("time", "training:time_per_call"),
)


def main(task: dict[str, Any], requests: Iterator[str], tell: Callable[[Any], None]) -> None:
    """Run the checks that are requested by name. An error that a check raises ends the process."""
    sys.excepthook = lambda kind, error, trace: tell(asdict(CheckResult(FAILED, told(error))))
    checks = {check.name: check for check in CHECKS}
    bench = Bench(**task)
    has_device = False
    for name in requests:
        if not has_device and name != "versions":
            bench = replace(bench, device=set_device(bench.device))
            has_device = True
        tell({"device": bench.device, **asdict(checks[name].function(bench))})


def set_device(name: str) -> str:
    """Select PyNative mode and a device, and return the name of the device; "" leaves the choice to MindSpore."""
    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    if name:
        mindspore.set_device(name)
    return str(mindspore.get_context("device_target"))

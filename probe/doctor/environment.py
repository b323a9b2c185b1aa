# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Checks of the surroundings: versions, device, folder, two processes in it, and the private names of MindSpore."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import importlib
import importlib.metadata
import os
import platform
import re
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from probe.doctor.bench import (
    FAILED,
    OK,
    WARNING,
    Bench,
    CheckResult,
    Entries,
    RecordedDump,
    read_entries,
)
from probe.errors import UsageError
from probe.findings.sentence import NOTHING, say
from probe.findings.system import foreign, reason_of
from probe.private_names import PRIVATE_PARTS, TESTED as MINDSPORE, is_between, missing_names
from probe.process.isolated import EndedError, Isolated

_SECOND = "probe.doctor.environment:record"  # the function of the second process
_OURS = "Functional.relu.0.forward"
_OTHERS = "Functional.tanh.0.forward"
_LIMIT = 100
#: the packages in which torch is an adapter above MindSpore
_OF_TORCH = ("mindnlp", "msadapter")
#: package: the first version that was tested, and the first that was not; as in pyproject.toml
TESTED = {
    "MindSpore": MINDSPORE,
    "Python": ("3.9", "3.13"),
    "numpy": ("1.25", "2"),
    "ml_dtypes": ("0.3", "0.6"),
}
_PLACES = ("CANN", "system")
_UNKNOWN = "of unknown version"
_NONE = "none"
_CANN_FILES = ("version.cfg", "*/version.info", "*/ascend_toolkit_install.info")
_VERSION = re.compile(r"^\s*\[?version\]?\s*=\s*\[?([\w.]+)", re.IGNORECASE | re.MULTILINE)


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
        return CheckResult(FAILED, say("doctor.nothing", reason=dump.reason))
    beside = [name for name in os.listdir(bench.folder) if name.startswith("shared-")]
    return _judge(
        said, dump, {name: read_entries(os.path.join(bench.folder, name)) for name in beside}
    )


def _judge(said: str, first: RecordedDump, others: dict[str, Entries]) -> CheckResult:
    if first.error or list(first.data) != [_OURS]:
        held = say("doctor.holds", names=list(first.data)) if first.data else say("doctor.empty")
        found = foreign(first.error) if first.error else held
        return CheckResult(FAILED, say("doctor.damaged", found=found))
    if said == "refused":
        return CheckResult(OK, say("doctor.refused"))
    if said == "recorded" and any(list(entries) == [_OTHERS] for entries in others.values()):
        return CheckResult(OK, say("doctor.beside"))
    words = foreign(said) if said else say("doctor.silent")
    return CheckResult(FAILED, say("doctor.no_second", said=words))


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


def versions(bench: Bench) -> CheckResult:
    """Tell the versions, and those that were never tested. A package that cannot be imported raises."""
    from probe import __version__

    found = {"probe": __version__, "Python": platform.python_version()}
    for package in ("numpy", "ml_dtypes", "MindSpore"):
        found[package] = str(importlib.import_module(package.lower()).__version__)
    for package in _OF_TORCH:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    untested = [
        name for name, (first, end) in TESTED.items() if not is_between(found[name], first, end)
    ]
    found.update(
        CANN=_cann(), system=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    )
    packages = [f"{name} {version}" for name, version in found.items() if name not in _PLACES]
    cann = say("doctor.unknown_version") if found["CANN"] == _UNKNOWN else found["CANN"]
    cann = say("doctor.none") if found["CANN"] == _NONE else cann
    machine = f"{platform.system()} {platform.machine()}"
    facts = {"packages": packages, "cann": cann, "machine": machine, "cores": os.cpu_count()}
    if not untested:
        return CheckResult(OK, say("doctor.tested", **facts), found)
    ranges = [
        say("doctor.range", name=name, first=TESTED[name][0], end=TESTED[name][1])
        for name in untested
    ]
    return CheckResult(WARNING, say("doctor.untested", **facts, ranges=ranges), found)


def device(bench: Bench) -> CheckResult:
    """Run an operation on the device."""
    import mindspore

    said = ""
    with contextlib.suppress(
        AttributeError, RuntimeError, ValueError
    ):  # only some devices have a name
        said = str(mindspore.hal.get_device_name(0))
    sums = (mindspore.Tensor([1.0, 2.0], mindspore.float32) + 1.0).asnumpy().tolist()
    said = "" if said == bench.device else said
    if sums != [2.0, 3.0]:
        return CheckResult(FAILED, say("doctor.sums", device=bench.device, sums=str(sums)))
    name = say("doctor.device_name", name=said) if said else NOTHING
    return CheckResult(OK, say("doctor.device", device=bench.device, name=name), {"name": said})


def folder(bench: Bench) -> CheckResult:
    """Write, replace, link and lock files, as a dump does."""
    place = bench.chosen or tempfile.gettempdir()
    kind = say("doctor.chosen") if bench.chosen else say("doctor.temporary")
    try:
        with tempfile.TemporaryDirectory(dir=place) as work:
            first, second, link = (os.path.join(work, name) for name in ("first", "second", "link"))
            for path in (first, second):
                with open(path, "w") as file:
                    file.write(path)
            os.replace(second, first)
            with open(first) as held, open(first) as other:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return CheckResult(FAILED, say("doctor.no_locks", folder=kind))
            try:
                os.link(first, link)
            except OSError as error:
                fact = say("doctor.no_links", folder=kind, reason=reason_of(error))
                return CheckResult(WARNING, fact)
    except OSError as error:
        unwritten = say("error.unwritable", path=kind, reason=reason_of(error))
        return CheckResult(FAILED, unwritten)
    return CheckResult(OK, say("doctor.folder", folder=kind))


def names(bench: Bench) -> CheckResult:
    """Look for each private name of MindSpore that probe uses."""
    missing = [(part, name) for part, name in missing_names()]
    count = sum(len(part.names) for part in PRIVATE_PARTS)
    if not missing:
        return CheckResult(OK, say("doctor.names", count=count), {"names": count})
    losses = {part.part: part.loss for part, _ in missing}
    shown = [name for _, name in missing[:5]] + ["…"] * (len(missing) > 5)
    lost = say("clauses", parts=[foreign(loss) for loss in losses.values()])
    fact = say("doctor.missing", count=len(missing), all=count, names=shown, losses=lost)
    return CheckResult(FAILED, fact, {"missing": [name for _, name in missing], "losses": losses})


def _cann() -> str:
    """Return the version of CANN that the environment names, or "none"."""
    root = os.environ.get("ASCEND_HOME_PATH") or os.environ.get("ASCEND_TOOLKIT_HOME") or ""
    for pattern in _CANN_FILES if root else ():
        for path in sorted(glob.glob(os.path.join(glob.escape(root), pattern))):
            with (
                contextlib.suppress(OSError),
                open(path, encoding="utf-8", errors="replace") as file,
            ):
                match = _VERSION.search(file.read(100_000))
                if match:
                    return match[1]
    return _UNKNOWN if root else _NONE

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own punctuation
"""The command ``probe doctor``: a line for each check, or one JSON document.

The checks run in processes of their own: one that crashes, hangs or fails takes no other check down.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import Any

from probe import __version__
from probe.config.messages import nearest
from probe.doctor.bench import CHECKS, FAILED, NOT_RUN, OK, WARNING, CheckResult, DoctorCheck
from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.findings.system import foreign
from probe.findings.wording import Wording
from probe.process.isolated import EndedError, Isolated
from probe.reading.commands.arguments import add_command
from probe.reading.commands.command import Command, Option
from probe.reading.commands.shared_options import LANGUAGE
from probe.reading.dumps.text import space

_DEVICES = ("CPU", "GPU", "Ascend")
_LIMIT = 120.0  # seconds; the first operations on a device may compile for long
_FORMAT = 1
_RESULTS = {
    OK: "doctor.ok",
    WARNING: "doctor.warning",
    FAILED: "doctor.failed",
    NOT_RUN: "doctor.not_run",
}
CheckRow = dict[str, Any]
_PATH = re.compile(r"(?<![\w.:/-])/(?:[^/\s'\",:;()]+/)+([^/\s'\",:;()]*)")


def add_doctor(commands: Any, language: str) -> None:
    """Add the command to the command line."""
    doctor = Command(
        "doctor",
        _run,
        help=Wording(
            "check that probe works with this MindSpore on this machine",
            "检查 probe 能否在本机与此 MindSpore 一起工作",
        ),
        description=Wording(
            (
                "Check that probe works with this MindSpore, on this machine and device. It takes "
                "less than a minute, and prints a line for each check. Paste the text into an issue: "
                "it names no folder, host or user."
            ),
            (
                "检查 probe 能否在本机和此设备上与此 MindSpore 一起工作。用时不到一分钟，"
                "每项检查打印一行。可把文本贴到问题单：其中没有目录、主机或用户名。"
            ),
        ),
        options=(
            Option(
                "--device",
                type=_device,
                metavar="DEVICE",
                help=Wording(
                    "CPU, GPU or Ascend (default: MindSpore's choice)",
                    "CPU、GPU 或 Ascend（默认：由 MindSpore 选择）",
                ),
            ),
            Option(
                "--folder",
                default="",
                metavar="DIR",
                help=Wording(
                    "write the files of the checks below this folder (default: that of temporary files)",
                    "把检查的文件写到该目录下（默认：临时文件的目录）",
                ),
            ),
            Option(
                "--limit",
                type=_seconds,
                default=_LIMIT,
                metavar="SECONDS",
                help=Wording("the longest time of a check", "一项检查的最长时间"),
            ),
            Option(
                "--json",
                action="store_true",
                help=Wording(
                    "print one JSON document, with more details", "打印一个 JSON 文档，内容更详细"
                ),
            ),
            LANGUAGE,
        ),
        failed=1,
    )
    add_command(commands, doctor, language)


def _device(name: str) -> str:
    if name in _DEVICES:
        return name
    near = nearest(name.lower(), [device.lower() for device in _DEVICES])
    device = next((device for device in _DEVICES if device.lower() == near), "")
    hint = say("option.hint", word=device) if device else NOTHING
    raise argparse.ArgumentTypeError(
        say("option.value", word=name, allowed=list(_DEVICES), hint=hint)
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if 0 < seconds < 1e6:
        return seconds
    raise argparse.ArgumentTypeError(
        say("option.value", word=text, allowed=say("option.seconds"), hint=NOTHING)
    )


def _run(given: argparse.Namespace) -> int:
    began = time.monotonic()
    rows = []
    width = max(len(check.name) for check in CHECKS)
    if not given.json:
        device = given.device or say("doctor.any_device")
        print(say("doctor.title", version=__version__, device=device).text(given.lang), flush=True)
    for row in Runner(given.device or "", given.folder, given.limit).rows(CHECKS):
        fact: Sentence = row["fact"]
        rows.append({**row, "fact": scrub(str(fact))})
        if not given.json:
            result = say(_RESULTS[row["result"]]).text(given.lang)
            pad = " " * (8 - space(result))
            told = scrub(fact.text(given.lang))
            print(f"{result}{pad} {row['name']:{width}}  {told}", flush=True)
    counts = {
        result: sum(row["result"] == result for row in rows)
        for result in (OK, WARNING, FAILED, NOT_RUN)
    }
    seconds = round(time.monotonic() - began, 1)
    status = 1 if counts[FAILED] else 0
    if given.json:
        device = next((row["device"] for row in rows if row["device"]), given.device or "")
        summary = {
            "tool": "probe doctor",
            "format": _FORMAT,
            "probe": __version__,
            "device": device,
            "status": status,
        }
        json.dump(
            {**summary, "seconds": seconds, "checks": rows},
            sys.stdout,
            indent=1,
            ensure_ascii=False,
        )
        print()
    else:
        parts = [
            say("doctor.count", count=count, result=say(_RESULTS[result]))
            for result, count in counts.items()
            if count
        ]
        print(say("doctor.end", counts=parts, seconds=seconds).text(given.lang))
    return status


class Runner:
    """Runs checks on a device, "" for MindSpore's choice, in a folder, "" for the one of temporary files."""

    def __init__(self, device: str, chosen: str, limit: float) -> None:
        self._device = device
        self._limit = limit
        self._chosen = os.path.abspath(chosen) if chosen else ""  # the checks run in another folder

    def rows(self, checks: Iterable[DoctorCheck]) -> Iterator[CheckRow]:
        """Yield the result of each check: its name, result, fact, seconds, device and details."""
        is_needed = {check.name: check.is_needed for check in checks}
        waiting = list(is_needed)
        with contextlib.ExitStack() as cleanup:
            folder = cleanup.enter_context(self._folder())
            while waiting:
                for row in self._process(tuple(waiting), os.path.join(folder, str(len(waiting)))):
                    waiting.remove(row["name"])
                    yield row
                    if row["result"] == FAILED and is_needed[row["name"]]:
                        left = vars(
                            CheckResult(NOT_RUN, say("doctor.needs", name=repr(row["name"])))
                        )
                        yield from (_row(name, left) for name in waiting)
                        return

    @contextlib.contextmanager
    def _folder(self) -> Iterator[str]:
        """Make the folder for the files of the checks; the check "folder" tells if the chosen one cannot be used."""
        made = ""
        for place in [self._chosen, None] if self._chosen else [None]:
            with contextlib.suppress(OSError):
                made = made or tempfile.mkdtemp(prefix="probe-doctor-", dir=place)
        if not made:
            raise UsageError(say("doctor.no_folder"))
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def _process(self, names: tuple[str, ...], folder: str) -> Iterator[CheckRow]:
        """Yield the results of checks that run in one process, until one fails, as it may have spoiled the process."""
        os.makedirs(folder)
        task = {"device": self._device, "chosen": self._chosen, "folder": folder}
        # it runs in the folder, as MindSpore's backend of Ascend makes a folder "offload" where it runs
        with contextlib.closing(Isolated("probe.doctor.bench:main", task, folder)) as process:
            for name in names:
                began = time.monotonic()
                process.send(name)
                try:
                    found = process.receive(self._limit)
                except TimeoutError:
                    found = vars(CheckResult(FAILED, say("doctor.limit", seconds=self._limit)))
                except EndedError as ended:
                    found = vars(CheckResult(FAILED, _ending(ended)))
                yield _row(name, found, time.monotonic() - began)
                if found["result"] == FAILED:
                    return


def _row(name: str, found: dict[str, Any], seconds: float = 0.0) -> CheckRow:
    fact = (
        found["fact"] if isinstance(found["fact"], Sentence) else Sentence.from_dict(found["fact"])
    )
    rest = {key: value for key, value in found.items() if key != "fact"}
    row: CheckRow = scrub({"name": name, "seconds": round(seconds, 2), "device": "", **rest})
    return {**row, "fact": fact}


def _ending(ended: EndedError) -> Sentence:
    """Return how a process ended before its check did, with the last words of it."""
    if ended.status < 0:
        place = NOTHING
        if ended.frame:
            file, line, function = ended.frame
            place = say("doctor.place", function=function, file=file, line=line)
        return say("doctor.signal", name=signal.Signals(-ended.status).name, place=place)
    return say("doctor.status", status=ended.status, words=foreign(ended.words[:200]))


def scrub(value: Any) -> Any:
    """Return a value whose texts tell nothing personal: no folder, host or user.

    >>> scrub({"error": "cannot open /home/alice/run/a.so"})
    {'error': 'cannot open …/a.so'}
    """
    if isinstance(value, dict):
        return {key: scrub(item) for key, item in value.items()}
    if isinstance(value, list):
        return [scrub(item) for item in value]
    if not isinstance(value, str):
        return value
    text = _PATH.sub(r"…/\1", value)
    host = socket.gethostname()
    return re.sub(rf"\b{re.escape(host)}\b", "<host>", text) if len(host) > 3 else text

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own punctuation
"""The command ``probe replay``."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, say
from probe.findings.system import reason_of
from probe.findings.wording import Wording
from probe.reading.commands.arguments import add_command, names
from probe.reading.commands.command import Command, Option
from probe.reading.commands.shared_options import CHOICE, CSV, JOBS, LANGUAGE, NAMES
from probe.reading.dumps.tables import create

if TYPE_CHECKING:
    from probe.replaying.replay import Replays

_COLUMNS = (
    "step", "rank", "call", "place", "verdict", "off", "here", "roundings", "roundings_here", "element", "golden",
    "note",
)  # fmt: skip
_OPTIONS = (
    Option(
        "path",
        metavar="DUMP",
        help=Wording(
            "a dump_path, or a step or rank folder in it", "dump_path，或其中 step、rank 的目录"
        ),
    ),
    Option(
        "call",
        nargs="?",
        metavar="CALL",
        help=Wording(
            "as Functional.softmax.3.forward or Functional.softmax",
            "例如 Functional.softmax.3.forward 或 Functional.softmax",
        ),
    ),
    Option("--all", action="store_true", help=Wording("all calls", "所有调用")),
    *NAMES,
    Option(
        "--gradients",
        nargs="?",
        const="",
        metavar="CALL",
        help=Wording(
            "compare gradients with central differences, also those of your own bprop",
            "把梯度与中心差分比较，也包括您自己的 bprop",
        ),
    ),
    Option(
        "--repeat",
        type=int,
        default=0,
        metavar="N",
        help=Wording("make each call N times, and compare bytes", "每个调用做 N 次，并比较字节"),
    ),
    *CHOICE,
    Option(
        "--dtype",
        default="",
        metavar="DTYPE",
        help=Wording(
            "the dtype of the calls here (default: the recorded ones)",
            "本机调用的 dtype（默认：记录的 dtype）",
        ),
    ),
    Option(
        "--device",
        default="",
        metavar="DEVICE",
        help=Wording("the device of the calls here (default: CPU)", "本机调用的设备（默认：CPU）"),
    ),
    JOBS,
    Option(
        "--limit",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help=Wording("the longest time of a call", "一个调用的最长时间"),
    ),
    Option(
        "--script",
        metavar="FILE",
        help=Wording(
            "write a program that makes the call again, and its arrays",
            "写出重做该调用的程序及其数组",
        ),
    ),
    CSV,
    Option(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help=Wording(
            "write all verdicts as JSON (default: to standard output)",
            "把所有结论写成 JSON（默认：写到标准输出）",
        ),
    ),
    LANGUAGE,
)


def add_replay(commands: Any, language: str) -> None:
    """Add ``probe replay``."""
    replay = Command(
        "replay",
        run_replay,
        help=Wording("is this operator right?", "这个算子对吗？"),
        description=Wording(
            (
                "Make recorded calls again from their recorded inputs, in float64 on CPU, and "
                "judge their recorded outputs. The dump needs arrays: task tensor. It may come "
                "from another device."
            ),
            (
                "用记录的输入在 CPU 上以 float64 重做记录的调用，并评判记录的输出。dump "
                "需要数组：任务 tensor。它可以来自其他设备。"
            ),
        ),
        epilog=Wording(
            "Exit status: 0 as expected, 1 a call is wrong or worse than expected, 2 wrong use, or nothing to replay.",
            "退出码：0 符合预期，1 有调用错误或比预期差，2 用法错误，或没有可重放的调用。",
        ),
        options=_OPTIONS,
    )
    add_command(commands, replay, language)


def run_replay(given: argparse.Namespace) -> int:
    """Run ``probe replay``."""
    from probe.replaying.replay import choose, known_dtype, replay

    is_gradients = given.gradients is not None
    given.call = given.call or given.gradients
    asked = names(given)
    if (bool(given.call) == given.all) if not any(asked) else bool(given.call):
        raise UsageError(say("error.replay_needs_call"))
    if given.csv == "-" and given.json == "-":
        raise UsageError(say("error.two_outputs"))
    if not given.limit > 0:
        raise UsageError(say("error.replay_bad_limit", value=given.limit))
    if is_gradients and (given.script or given.dtype or given.device):
        raise UsageError(say("error.replay_beside_gradients"))
    if given.repeat and (given.repeat < 2 or given.script or is_gradients):
        raise UsageError(say("error.replay_bad_repeat"))
    if given.script:
        from probe.replaying.script import write_script

        if given.all:
            raise UsageError(say("error.replay_one_call"))
        call = next(choose(given.path, given.call, given.step, given.rank, asked))
        for path in write_script(call, given.script, known_dtype(given.dtype)):
            _tell_written(path, given.lang)
        return 0
    calls = replay(
        given.path,
        given.call or None,
        dtype=given.dtype,
        device=given.device,
        jobs=max(given.jobs, 0),
        step=given.step,
        rank=given.rank,
        limit=given.limit,
        gradients=is_gradients,
        repeat=given.repeat,
        names=asked,
        lang=given.lang,
    )
    if given.json == "-":
        json.dump([call.to_dict() for call in calls], sys.stdout, indent=1)
    elif given.csv != "-":
        print(calls.text(given.lang))
    write_files(calls, given.csv, given.json if given.json != "-" else None, given.lang)
    return calls.status


def write_files(
    calls: Replays, csv: str | None, as_json: str | None, language: str = ENGLISH
) -> None:
    """Write the verdicts into a table, with notes in this language, and as JSON, or raise UsageError."""
    from probe.reading.dumps.tables import table_file, write_csv

    try:
        if csv:
            with table_file(csv) as file:
                write_csv(file, _COLUMNS, rows(calls, language))
        if as_json:
            with create(as_json) as file:
                json.dump([call.to_dict() for call in calls], file, indent=1)
    except OSError as error:
        raise UsageError(say("error.file_unwritten", reason=reason_of(error))) from error
    for path in filter(None, (csv, as_json)):
        if path != "-":
            _tell_written(path, language)


def _tell_written(path: str, language: str) -> None:
    print(say("replay.written", path=path).text(language), file=sys.stderr)


def rows(calls: Replays, language: str = ENGLISH) -> list[tuple[Any, ...]]:
    """Return a row for each output, and one for each call that is not replayable."""
    found: list[tuple[Any, ...]] = []
    for call in calls:
        head = call.step, call.rank, call.name
        for item in call.outputs:
            numbers = item.off, item.here, item.roundings, item.roundings_here
            element = ",".join(map(str, item.element))
            found.append(
                (
                    *head,
                    item.place,
                    item.verdict,
                    *numbers,
                    element,
                    call.golden,
                    item.said.text(language),
                )
            )
        if not call.outputs:
            found.append(
                (*head, "", call.verdict, None, None, None, None, "", "", call.said.text(language))
            )
    return found

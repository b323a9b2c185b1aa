# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own punctuation
"""The commands ``probe try``, ``probe bisect`` and ``probe drill``: options, then a program as Python is given it."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, as_json, say
from probe.findings.system import foreign
from probe.findings.wording import Wording
from probe.intervention import SHORT
from probe.intervention.bisection import CLOSENESS, add_bisect, agreement, golden_losses
from probe.intervention.change import KINDS, Change
from probe.intervention.drill import add_drill
from probe.intervention.runs import Runs, table
from probe.launch.command_line import (
    count_of_options,
    split_program,
    tell_of_options_behind,
)
from probe.options import OneLineParser, asked_language
from probe.reading.commands.arguments import add_options
from probe.reading.commands.command import Option
from probe.reading.commands.main import ended
from probe.reading.commands.shared_options import LANGUAGE

_AS_OF_RUN = Wording("as of probe run", "与 `probe run` 相同")
#: the answer, the exit status, the text
Answer = tuple[dict[str, Any], int, str]


def main(words: Sequence[str]) -> int:
    """Run a command, and return its exit status: 0, 1, or 2 for wrong use."""
    name = words[0]
    language = asked_language(words)
    usage = say("help.program_usage", command=name).text(language)
    about = say("help.changes", short=SHORT[name]).text(language)
    parser = OneLineParser(
        prog=f"probe {name}", usage=usage, description=about, allow_abbrev=False, language=language
    )
    run = _COMMANDS[name](parser)
    _add_common(parser, name)
    count = count_of_options(words[1:], parser) + 1
    given = parser.parse_args(words[1:count])
    path, module, rest = split_program(words[count:])
    if not path and not module:
        parser.error(say("option.program"))
    tell_of_options_behind(rest, parser, path or f"-m {module}", language)
    options = {"at_model": given.step_at == "model", "as_msprobe": given.as_msprobe}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the process of the run ends too
    runs = Runs((path, module, rest), given.output, given.steps, given.ranks, options)

    def change() -> int:
        answer, status, text = run(given, runs)
        written = json.dumps(as_json(answer), indent=1)
        print(written if given.json == "-" else text)
        if given.json not in (None, "-"):
            Path(given.json).write_text(written, encoding="utf-8")
        return status

    return ended(change, 2, language)


def _add_common(parser: OneLineParser, name: str) -> None:
    """Add the options that all these commands have."""
    common = (
        Option(
            "--output",
            short="-o",
            default=f"probe_{name}",
            metavar="FOLDER",
            help=Wording("where runs are kept, and taken up again", "保存运行并从中继续的目录"),
        ),
        Option(
            "--steps",
            type=int,
            default=0,
            metavar="N",
            help=Wording(
                "cut each run after so many steps (default: none is cut)",
                "每次运行在这么多 step 之后截断（默认：不截断）",
            ),
        ),
        Option(
            "--ranks",
            type=int,
            default=0,
            metavar="N",
            help=Wording(
                "start so many ranks with msrun (default: one process)",
                "用 msrun 启动这么多 rank（默认：一个进程）",
            ),
        ),
        Option("--step-at", choices=("optimizer", "model"), default="optimizer", help=_AS_OF_RUN),
        Option("--as-msprobe", action="store_true", help=_AS_OF_RUN),
        Option(
            "--json",
            metavar="FILE",
            help=Wording(
                "write the answer as JSON (- for standard output)",
                "把回答写成 JSON（- 表示标准输出）",
            ),
        ),
        LANGUAGE,
    )
    add_options(parser, common, parser.language)


def _try(parser: OneLineParser) -> Callable[[argparse.Namespace, Runs], Answer]:
    changes = (
        Option(
            "--float32",
            action="append",
            metavar="CELL",
            help=Wording(
                "a Cell or call that computes in float32", "以 float32 计算的 Cell 或调用"
            ),
        ),
        Option(
            "--from",
            action="append",
            nargs=2,
            dest="put_in",
            metavar=("GOLDEN", "CALL"),
            help=Wording(
                "a call whose output becomes that of a golden dump with arrays",
                "输出换成带数组的标杆 dump 中输出的调用",
            ),
        ),
        Option(
            "--cpu",
            action="append",
            metavar="CALL",
            help=Wording("a call that is computed on the host", "在主机上计算的调用"),
        ),
        Option(
            "--formula",
            action="append",
            metavar="CALL",
            help=Wording("a call that its formula of replay computes", "用重放公式计算的调用"),
        ),
        Option(
            "--skip",
            action="append",
            metavar="CELL",
            help=Wording("a Cell that gives back its input", "直接返回输入的 Cell"),
        ),
        Option(
            "--seed",
            type=int,
            metavar="N",
            help=Wording(
                "in place of each seed of the program (default: the program's own)",
                "代替程序中的每个种子（默认：程序自己的种子）",
            ),
        ),
        Option(
            "--within",
            type=float,
            default=CLOSENESS,
            metavar="PART",
            help=Wording(
                "the part of a golden loss by which another one may differ",
                "与标杆损失相差的允许比例",
            ),
        ),
    )
    add_options(parser, changes, parser.language)

    def run(given: argparse.Namespace, runs: Runs) -> Answer:
        goldens = {golden for golden, _ in given.put_in}
        named: dict[str, Any] = {name: tuple(getattr(given, name)) for name in KINDS}
        change = Change(
            **named,
            golden="".join(goldens),
            put_in=tuple(call for _, call in given.put_in),
            seed=given.seed,
        )
        if not change.sentence:
            parser.error(say("try.no_change"))
        if len(goldens) > 1:
            parser.error(say("try.one_golden"))
        golden = golden_losses(change.golden) if change.golden else {}
        unchanged = runs.run()
        changed = runs.run(runs.calls.resolve(change))
        print(say("try.changed", change=change.sentence).text(given.lang), file=sys.stderr)
        if changed.status:
            raise UsageError(say("try.failed", reason=foreign(changed.why), folder=changed.folder))
        answer = {"change": str(change.sentence), "log": changed.folder, "golden": golden}
        columns = {
            "unchanged": unchanged.losses,
            "changed": changed.losses,
            **({"golden": golden} if golden else {}),
        }
        agreed = agreement(changed.losses, golden, given.within)
        said = say("try.differs", within=given.within) if golden else NOTHING
        if agreed is not None:
            said = say("try.agrees", step=agreed, within=given.within)
        text = f"{table(columns, given.lang)}\n{said.text(given.lang)}".rstrip()
        return {**answer, **columns, "agrees_from": agreed}, 0, text

    return run


_COMMANDS: dict[str, Callable[[OneLineParser], Callable[[argparse.Namespace, Runs], Answer]]] = {
    "try": _try,
    "bisect": add_bisect,
    "drill": add_drill,
}

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own punctuation
"""The command ``probe find``: what is on disk, or a program as Python is given it."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
from collections.abc import Sequence

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.wording import Wording
from probe.launch.command import seed_number
from probe.launch.command_line import (
    count_of_options,
    split_program,
    tell_of_options_behind,
)
from probe.options import OneLineParser, asked_language
from probe.process.rank import has_siblings, sibling_count
from probe.reading.commands.arguments import add_options
from probe.reading.commands.command import Option
from probe.reading.commands.main import ended
from probe.reading.commands.shared_options import LANGUAGE
from probe.reading.dumps.run import open as open_run
from probe.reading.dumps.text import safe
from probe.search import NAME
from probe.search.answer import Diagnosis
from probe.search.concluding import concluded
from probe.search.disk_answer import diagnosis_of
from probe.search.on_disk import by_chance, look
from probe.search.page import written_page
from probe.search.random_calls import random_alone
from probe.search.searching import Search
from probe.search.seeded import seeded
from probe.search.wishes import DEFAULT_FOLDER, Training, Wishes

_AS_OF_RUN = Wording("as of probe run", "与 `probe run` 相同")
_OPTIONS = (
    Option(
        "--golden",
        metavar="GOLDEN",
        help=Wording(
            "a program that is well, with its arguments in quotes, or its dump",
            "正常的程序（参数一起放在引号内），或其 dump",
        ),
    ),
    Option(
        "--plan",
        action="store_true",
        help=Wording("print the experiments, and do none", "显示实验，但不执行"),
    ),
    Option(
        "--minutes",
        type=float,
        default=30.0,
        metavar="N",
        help=Wording("the budget", "预算"),
    ),
    Option(
        "--resume",
        metavar="PROGRAM",
        help=Wording(
            "the program from a checkpoint on, with its arguments in quotes: for the runs after the first",
            "从检查点继续的程序（参数一起放在引号内）：用于第一次之后的运行",
        ),
    ),
    Option(
        "--ranks",
        type=int,
        default=1,
        metavar="N",
        help=Wording(
            "train on N ranks of this machine, as msrun does",
            "像 `msrun` 一样在本机用 N 个 rank 训练",
        ),
    ),
    Option(
        "--seed",
        type=seed_number,
        metavar="N",
        help=Wording(
            "CHANGES THE TRAINING: as of probe run, with one thread and fixed hashes",
            "会改变训练：与 `probe run` 相同，并使用单线程和固定的哈希",
        ),
    ),
    Option("--yes", action="store_true", help=Wording("ask nothing", "不询问")),
    Option(
        "--output",
        short="-o",
        default=DEFAULT_FOLDER,
        metavar="FOLDER",
        help=Wording("where the search is kept, and continued", "保存查找并从中继续的目录"),
    ),
    Option(
        "--in-place",
        action="store_true",
        help=Wording(
            "run in this folder, not in a copy: files of the training are overwritten",
            "在本目录而不是副本中运行：训练的文件会被覆盖",
        ),
    ),
    Option("--step-at", choices=("optimizer", "model"), default="optimizer", help=_AS_OF_RUN),
    Option("--as-msprobe", action="store_true", help=_AS_OF_RUN),
    Option(
        "--json",
        action="store_true",
        help=Wording(
            "write JSON: a line for each experiment, then the answer",
            "写 JSON：每个实验一行，最后是回答",
        ),
    ),
    LANGUAGE,
)
_PATHS = Option(
    "paths",
    nargs="+",
    metavar=("DIR", "GOLDEN"),
    help=Wording("a dump_path, and that of a golden run", "dump_path，以及标杆运行的 dump_path"),
)


def main(words: Sequence[str]) -> int:
    """Run the command; return its exit status: 0 nothing found, 1 something, 2 wrong use or it cannot be known."""
    language = asked_language(words)
    usage = say("help.find_usage", command=NAME).text(language)
    about = say("help.find_long").text(language)
    parser = OneLineParser(
        prog=f"probe {NAME}", usage=usage, description=about, allow_abbrev=False, language=language
    )
    add_options(parser, _OPTIONS, language)
    count = count_of_options(words[1:], parser) + 1
    rest = list(words[count:])
    if not rest:
        parser.parse_args(words[1:])
        parser.error(say("find.no_input"))
    if _is_folder(rest[0]):
        add_options(parser, [_PATHS], language)
        given = parser.parse_args(words[1:])
        return ended(lambda: _of_disk(given), 2, language)
    given = parser.parse_args(words[1:count])
    training = _training(rest)
    if training is None:
        parser.error(say("option.program"))
    tell_of_options_behind(
        training.arguments, parser, training.path or f"-m {training.module}", language
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the process of the run ends too
    return ended(lambda: _of_program(given, training), 2, language)


def _is_folder(word: str) -> bool:
    """Return whether a word is a folder of runs, or looks like one: programs are files, or have a main file."""
    is_program = word.startswith("-m") or os.path.exists(os.path.join(word, "__main__.py"))
    return not is_program and not word.endswith((".py", ".pyc", ".zip"))


def _training(words: Sequence[str]) -> Training | None:
    """Return the program that words mean; None for none."""
    path, module, rest = split_program(words)
    return Training(_in_copy(path), module, tuple(rest)) if path or module else None


def _in_copy(path: str) -> str:
    """Return a path that is the same file in a copy of this folder, where it has one."""
    relative = os.path.relpath(path) if path else ""
    return os.path.abspath(path) if relative.startswith(os.pardir + os.sep) else relative


def _of_disk(given: argparse.Namespace) -> int:
    """Answer about what is on disk."""
    if len(given.paths) > 2:
        raise UsageError(say("find.too_many"))
    for option in ("golden", "resume"):
        if getattr(given, option):
            raise UsageError(say("find.of_program", option=f"--{option}", path=given.paths[0]))
    path, golden = [*given.paths, ""][:2]
    seen = look(path, golden)
    doubt = random_alone(seen.cause, path, golden)
    if doubt:
        seen = by_chance(seen, look(path), doubt)
    return _tell(diagnosis_of(seen, path, golden), given, 1)


def _of_program(given: argparse.Namespace, training: Training) -> int:
    """Search for the cause of the symptom of a program."""
    training.check()
    if not given.minutes > 0:
        raise UsageError(say("find.minutes", value=given.minutes))
    if given.ranks < 1:
        raise UsageError(say("find.ranks", value=given.ranks))
    if has_siblings():
        raise UsageError(say("find.under_launcher", count=sibling_count()))
    golden, golden_path = _golden(given.golden or "")
    resumed = _program(given.resume) if given.resume else None
    options = ["--step-at", "model"] if given.step_at == "model" else []
    options += ["--as-msprobe"] if given.as_msprobe else []
    wishes = Wishes(
        training,
        golden,
        golden_path,
        os.path.abspath(given.output),
        given.minutes,
        given.in_place,
        tuple(options),
        given.lang,
        given.json,
        resumed,
        given.ranks,
        given.seed,
    )
    search = Search(wishes)
    if given.plan:
        for line in search.plan():
            print(safe(line.text(given.lang)))
        return 0
    if not given.yes and not given.json and not _is_agreed(search):
        return 0
    try:
        search.run()
        search = seeded(search)
    except KeyboardInterrupt:
        told = say("find.interrupted", command=wishes.command(wishes.minutes))
        print(f"probe: {safe(told.text(given.lang))}", file=sys.stderr)
        raise
    if not given.json:
        print()
    found = concluded(search)
    page, told = written_page(search, found)
    status = _tell(found, given, None, page)
    if told and not given.json:
        print(safe(told.text(given.lang)))
    return status


def _golden(text: str) -> tuple[Training | None, str]:
    """Return the golden program, or the path of its dump; raise UsageError where it is neither."""
    if not text:
        return None, ""
    if os.path.isdir(text) and not os.path.exists(os.path.join(text, "__main__.py")):
        if not open_run(text).folders:
            raise UsageError(say("find.golden_rows", path=text))
        return None, os.path.abspath(text)
    return _program(text), ""


def _program(text: str) -> Training:
    """Return the program that one word of the command line means."""
    words = [text] if os.path.exists(text) else shlex.split(text)
    training = _training(words)
    if training is None:
        raise UsageError(say("find.no_file", path=text))
    training.check()
    return training


def _is_agreed(search: Search) -> bool:
    """Return whether the user agrees to the plan; without a terminal nobody is asked."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    wishes = search.wishes
    facts = {"training": str(wishes.training), "minutes": wishes.minutes, "folder": wishes.folder}
    print(safe(say("find.agree", **facts).text(wishes.language)), end=" ", flush=True)
    return sys.stdin.readline().strip().lower() in ("", "y", "yes")


def _tell(
    found: Diagnosis, given: argparse.Namespace, indent: int | None, page: str | None = None
) -> int:
    """Print the answer; return the exit status."""
    if given.json:
        print(json.dumps({**found.to_dict(), "page": page}, indent=indent))
        return found.status
    for line in found.lines():
        print(safe(line.text(given.lang)))
    return found.status

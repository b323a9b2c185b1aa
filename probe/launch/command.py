# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own punctuation
"""The command ``probe run``: settings as options, then a program as Python is given it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any

from probe.config.config_file import ConfigFile
from probe.config.settings import Settings, meanings
from probe.errors import ProbeError
from probe.findings.sentence import ENGLISH, NOTHING, Sentence, said_of, say
from probe.findings.wording import Wording
from probe.launch.command_line import (
    count_of_options,
    split_program,
    tell_of_options_behind,
)
from probe.launch.program import Program
from probe.launch.trial import try_settings
from probe.options import OneLineParser, asked_language
from probe.reading.commands.arguments import add_options
from probe.reading.commands.command import Option
from probe.reading.commands.shared_options import LANGUAGE
from probe.seeding import LARGEST

if TYPE_CHECKING:
    from probe.launch.launcher import Launcher

_WORDS = (
    "rank",
    "step",
    "data_mode",
    "summary_mode",
)  # settings that are lists of numbers or words: 0,4-6
_PATHS = ("dump_path", "support_ops", "golden", "bench_path")
#: settings that are lists of texts, which may have commas: the option is repeated
_TEXTS = ("scope", "list", "exclude", "tensor_list")
#: settings that are read as JSON; those whose default is a whole number are, too
_JSON = ("kernel_dump", "when", "slice", "max_disk")


def add_run(commands: Any, language: str) -> None:
    """Name the command in the list of commands. ``main`` runs it: the program's exceptions are its own."""
    commands.add_parser("run", help=say("help.run").text(language), add_help=False)


def main(words: Sequence[str]) -> int:
    """Run a program; return only where it ends without ``sys.exit`` or an exception."""
    language = asked_language(["run", *words])
    parser = _parser(language)
    count = count_of_options(words, parser)
    given = vars(parser.parse_args(words[:count]))
    config = given.pop("config")
    given.pop("lang")
    at_model = given.pop("step_at") == "model"
    as_msprobe = given.pop("as_msprobe")
    perturb = given.pop("perturb") or ""
    first_step = given.pop("first_step")
    seed = given.pop("seed")
    path, module, rest = split_program(words[count:])
    if not path and not module:
        parser.error(say("option.program"))
    tell_of_options_behind(rest, parser, path or f"-m {module}", language)
    settings = {name: value for name, value in given.items() if value is not None}
    config = os.path.abspath(config) if config else ""
    try:
        # the folder belongs to the place where the command was given
        loaded = ConfigFile(config or None, **settings).load()
        settings["dump_path"] = loaded.dump_path
        if "golden" in settings:
            settings["golden"] = loaded.golden
        try_settings(loaded, os.path.dirname(os.path.realpath(path)))
    except ProbeError as error:
        said = said_of(error)
        print(
            f"probe: {said.text(language) if isinstance(said, Sentence) else said}", file=sys.stderr
        )
        return 2
    Program(path, module, rest).check(language)
    launcher = join(
        path,
        module,
        rest,
        config,
        settings,
        at_model,
        as_msprobe,
        perturb,
        first_step,
        language,
    )
    if seed is not None:
        launcher.seed(seed)
    launcher.run()
    return 0


def join(
    path: str,
    module: str,
    rest: list[str],
    config: str,
    settings: dict[str, Any],
    at_model: bool,
    as_msprobe: bool,
    perturb: str = "",
    first_step: int | None = None,
    language: str = ENGLISH,
) -> Launcher:
    """Begin to watch this process: the one of the command, or one that the program spawns."""
    from probe.launch.launcher import Launcher
    from probe.launch.perturb import Perturbation
    from probe.launch.program_debuggers import RefusedDebuggers

    has_settings = bool(config) or len(settings) > 1 or bool(perturb)
    source = ConfigFile(config or None, **settings)
    change = Perturbation(perturb, source)
    program = Program(path, module, rest)
    own = RefusedDebuggers(program, has_settings)
    launcher = Launcher(program, source, at_model, own, lambda _: change, first_step, language)
    given = (
        path,
        module,
        rest,
        config,
        settings,
        at_model,
        as_msprobe,
        perturb,
        first_step,
        language,
    )
    launcher.install(as_msprobe, f"from probe.launch.command import join; join(*{given!r})")
    return launcher


def _parser(language: str = ENGLISH) -> OneLineParser:
    usage = say("help.program_usage", command="run").text(language)
    long = say("help.run_long").text(language)
    parser = OneLineParser(
        prog="probe run", usage=usage, description=long, allow_abbrev=False, language=language
    )
    own = (
        Option(
            "--config",
            metavar="FILE",
            help=Wording("a settings file; the options win over it", "配置文件；选项优先于它"),
        ),
        Option(
            "--step-at",
            choices=("optimizer", "model"),
            default="optimizer",
            help=Wording("model: each call of it is a step", "model：每次调用模型为一个 step"),
        ),
        Option(
            "--as-msprobe",
            action="store_true",
            help=Wording(
                "import probe in place of msprobe, also where that is installed",
                "以 probe 代替 msprobe 导入，已安装 msprobe 时也是",
            ),
        ),
        Option(
            "--first-step",
            type=_step,
            metavar="N",
            help=Wording(
                "the number of the first step, for a resumed run (default: 0)",
                "第一个 step 的编号，用于续训（默认：0）",
            ),
        ),
        Option(
            "--perturb",
            nargs="?",
            const="parameters",
            choices=("parameters", "batch"),
            help=Wording(
                (
                    "CHANGES THE TRAINING: moves each parameter (with =batch each input of the model) by "
                    "one rounding at its first use, for compare --noise"
                ),
                (
                    "会改变训练：每个参数（=batch 时为模型的每个输入）首次使用时移动一个舍入单位，用于 "
                    "`compare --noise`"
                ),
            ),
        ),
        Option(
            "--seed",
            type=seed_number,
            metavar="N",
            help=Wording(
                "CHANGES THE TRAINING: calls probe.seed_all(N) before the program begins",
                "会改变训练：在程序开始之前调用 `probe.seed_all(N)`",
            ),
        ),
        LANGUAGE,
    )
    add_options(parser, own, language)
    settings = parser.add_argument_group(say("help.settings").text(language))
    texts = meanings(language)
    for row in fields(Settings):
        option = f"--{row.name.replace('_', '-')}"
        meaning = _with_default(texts[row.name], row.default, language)
        if isinstance(row.default, bool) or row.name in ("unlisted", "saved_tensors"):
            settings.add_argument(
                option, action=argparse.BooleanOptionalAction, default=None, help=meaning
            )
        elif row.name in _TEXTS:
            settings.add_argument(option, action="append", metavar="TEXT", help=meaning)
        elif row.name in _WORDS:
            parse = _words if row.name != "summary_mode" else _word_or_words
            settings.add_argument(option, type=parse, metavar="A,B", help=meaning)
        else:
            kind = _value if row.name in _JSON or _is_number(row) else str
            settings.add_argument(
                option, type=kind, metavar=_metavar(row.name, row.default), help=meaning
            )
    return parser


def _is_number(row: Field[Any]) -> bool:
    """Return whether a setting takes numbers."""
    kinds = str(row.type).split(" | ")
    return not {"int", "float"}.isdisjoint(kinds)


def _metavar(name: str, default: Any) -> str:
    """Return the word for the value of a setting."""
    is_number = type(default) is int
    return "PATH" if name in _PATHS else "N" if is_number else "VALUE"


def _with_default(meaning: str, default: Any, language: str) -> str:
    """Return the meaning of a setting with its default, where that is a word, a number, or a switch."""
    if type(default) not in (str, int, float, bool) or default == "":
        return meaning
    shown = json.dumps(default) if type(default) is not str else default
    return say("help.default", help=meaning.rstrip(".。"), value=shown).text(language)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _word_or_words(text: str) -> str | list[str]:
    return _words(text) if "," in text else text


def _step(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(
            say("option.value", word=text, allowed=say("option.from_zero"), hint=NOTHING)
        )
    return int(text)


def seed_number(text: str) -> int:
    """Return the value of an option that is a seed; raise an error of argparse where ``seed_all`` takes no such one."""
    if not text.isascii() or not text.isdigit() or int(text) > LARGEST:
        allowed = say("option.seed", most=LARGEST)
        raise argparse.ArgumentTypeError(
            say("option.value", word=text, allowed=allowed, hint=NOTHING)
        )
    return int(text)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The command ``probe run``: settings as options, then a program as Python is given it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from probe.config.settings import ConfigFile, Settings, meanings
from probe.errors import ProbeError
from probe.launch.program import Program
from probe.launch.trial import try_settings
from probe.options import OneLineParser

if TYPE_CHECKING:
    from probe.launch.launcher import Launcher

_LONG = (
    "Run a program, and record its training. Nothing in the program is changed. A step ends when the optimizer ends, "
    "or with a step of Model.train. All settings are options: docs/settings.md describes them."
)
_WORDS = ("rank", "step", "data_mode", "summary_mode")  # settings that are lists of numbers or words: 0,4-6
#: settings that are lists of texts, which may have commas: the option is repeated
_TEXTS = ("scope", "list", "exclude", "tensor_list")
#: settings that are read as JSON; those whose default is a whole number are, too
_JSON = ("kernel_dump", "when", "slice", "max_disk")


def add_run(commands: Any) -> None:
    """Name the command in the list of commands. ``main`` runs it: the program's exceptions are its own."""
    commands.add_parser("run", help="run a program, and record its training", add_help=False)


def main(words: Sequence[str]) -> int:
    """Run a program; return only where it ends without ``sys.exit`` or an exception."""
    parser = _parser()
    count = count_of_options(words, parser)
    given = vars(parser.parse_args(words[:count]))
    path, config, module = "", given.pop("config"), ""
    at_model = given.pop("step_at") == "model"
    as_msprobe = given.pop("as_msprobe")
    perturb = given.pop("perturb") or ""
    first_step = given.pop("first_step")
    rest = list(words[count:])
    if rest and rest[0].startswith("-m"):
        module = rest.pop(0)[2:] or (rest.pop(0) if rest else "")
    elif rest:
        path = rest.pop(0)
    if not path and not module:
        parser.error("a program is missing: a file, or -m MODULE")
    _tell_of_options_behind(rest, parser, path or f"-m {module}")
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
        print(f"probe: {error}", file=sys.stderr)
        return 2
    Program(path, module, rest).check()
    join(path, module, rest, config, settings, at_model, as_msprobe, perturb, first_step).run()
    return 0


def _tell_of_options_behind(rest: Sequence[str], parser: argparse.ArgumentParser, program: str) -> None:
    """Say which options of this command stand behind the program, and so are the program's."""
    own = {option for action in parser._actions for option in action.option_strings if option.startswith("--")}
    found = [word for word in rest if word.partition("=")[0] in own - {"--help"}]
    if found:
        told = f"probe: {', '.join(found)} behind {program} is the program's own; options of probe run stand before it"
        print(told, file=sys.stderr)


def join(
    path: str, module: str, rest: list[str], config: str, settings: dict[str, Any], at_model: bool, as_msprobe: bool,
    perturb: str = "", first_step: int | None = None,
) -> Launcher:  # fmt: skip
    """Begin to watch this process: the one of the command, or one that the program spawns."""
    from probe.launch.launcher import Launcher
    from probe.launch.perturb import Perturbation

    has_settings, source = bool(config) or len(settings) > 1 or bool(perturb), ConfigFile(config or None, **settings)
    changes = Perturbation(perturb, source)
    launcher = Launcher(Program(path, module, rest), source, at_model, has_settings, changes, first_step)
    given = (path, module, rest, config, settings, at_model, as_msprobe, perturb, first_step)
    launcher.install(as_msprobe, f"from probe.launch.command import join; join(*{given!r})")
    return launcher


def _parser() -> argparse.ArgumentParser:
    usage = "probe run [options] (FILE | -m MODULE) [arguments of the program]"
    parser = OneLineParser(prog="probe run", usage=usage, description=_LONG, allow_abbrev=False)
    add = parser.add_argument
    add("--config", metavar="FILE", help="a settings file; the options win over it")
    add("--step-at", choices=("optimizer", "model"), default="optimizer", help="model: each call of it is a step")
    add("--as-msprobe", action="store_true", help="import probe in place of msprobe, also where that is installed")
    add("--first-step", type=_step, metavar="N", help="the number of the first step, for a resumed run; default: 0")
    add(
        "--perturb", nargs="?", const="parameters", choices=("parameters", "batch"), help="CHANGES THE TRAINING: moves "
        "each parameter (with =batch each input of the model) by one rounding at its first use, for compare --noise"
    )  # fmt: skip
    settings = parser.add_argument_group("settings")
    texts = meanings()
    for row in fields(Settings):
        option, meaning = f"--{row.name.replace('_', '-')}", texts[row.name]
        if isinstance(row.default, bool) or row.name in ("unlisted", "saved_tensors"):
            settings.add_argument(option, action=argparse.BooleanOptionalAction, default=None, help=meaning)
        elif row.name in _TEXTS:
            settings.add_argument(option, action="append", metavar="TEXT", help=meaning)
        elif row.name in _WORDS:
            parse = _words if row.name != "summary_mode" else _word_or_words
            settings.add_argument(option, type=parse, metavar="A,B", help=meaning)
        else:
            kind = _value if row.name in _JSON or isinstance(row.default, int) else str
            settings.add_argument(option, type=kind, metavar=row.name.upper(), help=meaning)
    return parser


def count_of_options(words: Sequence[str], parser: argparse.ArgumentParser) -> int:
    """Return how many words are options and their values. All behind them are the program's."""
    sizes = {name: action.nargs for action in parser._actions for name in action.option_strings}
    count = 0
    while count < len(words) and (words[count].startswith("--") or words[count] in sizes):
        size = sizes.get(words[count])
        count += 1 + (size if isinstance(size, int) else "=" not in words[count] and size != "?")
    return count


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _word_or_words(text: str) -> str | list[str]:
    return _words(text) if "," in text else text


def _step(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed. Allowed: a whole number from 0")
    return int(text)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The command line: ``probe show DIR``, ``probe compare A B`` and others, or ``python -m probe …``."""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from probe.errors import ProbeError
from probe.findings.sentence import ENGLISH, Sentence, said_of, say
from probe.findings.system import reason_of
from probe.options import OneLineParser, asked_language, in_place
from probe.reading.commands.arguments import add_command, add_options
from probe.reading.commands.outlet import lasting_stdout
from probe.reading.commands.shared_options import LANGUAGE
from probe.reading.commands.table import COMMANDS
from probe.reading.dumps.tables import why_no_output
from probe.reading.dumps.text import safe, shorten

#: exit statuses: an output cannot be written, an error of ours (EX_SOFTWARE), Ctrl-C
_NO_OUTPUT = 2
_INTERNAL = 70
_INTERRUPTED = 130
_UTF8: Any = {"encoding": "utf-8", "errors": "backslashreplace"}


def run_command(
    version: str,
    arguments: Sequence[str] | None = None,
    further: Sequence[Callable[[Any, str], None]] = (),
) -> int:
    """Run a command and return its exit status: 0, 1 when it could not be done, 2 for wrong arguments, 70 after a bug.

    ``arguments`` None takes those of the process. The functions in ``further`` add commands of other rooms.
    """
    words = in_place(sys.argv[1:] if arguments is None else arguments)
    language = asked_language(words)
    parser = _parser(version, language)
    made: Any = functools.partial(OneLineParser, language=language)
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=made
    )
    for command in COMMANDS:
        add_command(commands, command, language)
    for add in further:
        add(commands, language)
    for stream in (
        sys.stdout,
        sys.stderr,
    ):  # a name that the terminal cannot show is no reason to fail
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    with lasting_stdout():
        given = parser.parse_args(words)
        reason = why_no_output(given)
        return _told(reason, _NO_OUTPUT, language) if reason else _status(given, language)


def _parser(version: str, language: str) -> OneLineParser:
    parser = OneLineParser(
        prog="probe", description=say("help.probe").text(language), language=language
    )
    about = say("help.version").text(language)
    parser.add_argument("--version", action="version", version=f"probe {version}", help=about)
    parser.add_argument(
        "--json-schema", action=_Schemas, nargs=0, help=say("help.schema").text(language)
    )
    add_options(parser, [LANGUAGE], language)
    return parser


def json_schemas() -> dict[str, Any]:
    """Return the JSON Schema of the answer of each command with ``--json``."""
    found = json.loads((Path(__file__).parent / "schemas.json").read_text(encoding="utf-8"))
    shared = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": found["$defs"]}
    return {command: {**shared, **schema} for command, schema in found["commands"].items()}


class _Schemas(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        given = argparse.Namespace(run=lambda _: print(json.dumps(json_schemas(), indent=1)) or 0)
        parser.exit(_status(given, ENGLISH))


def _status(given: argparse.Namespace, language: str) -> int:
    """Run a command that was parsed; return its exit status."""
    return ended(lambda: given.run(given), int(getattr(given, "failed", 1)), language)


def ended(run: Callable[[], int], failed: int, language: str) -> int:
    """Run a command; return its exit status. Each way to end has one form; ``failed`` is the status of a ProbeError."""
    try:
        status = int(run())
        sys.stdout.flush()
        return status
    except ProbeError as error:
        return _told(said_of(error), failed, language)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except MemoryError:
        return _told(say("error.memory"), failed, language)
    except OSError as error:  # of an output: those of inputs end at the door
        return _dropped(error, language)
    except Exception as error:
        return _told(_internal(error), _INTERNAL, language)


def _told(reason: Sentence | str, status: int, language: str) -> int:
    """Print why a command ends, and return its exit status."""
    told = reason.text(language) if isinstance(reason, Sentence) else reason
    with contextlib.suppress(OSError):
        print(f"probe: {safe(told)}", file=sys.stderr)
    return status


def _dropped(error: OSError, language: str) -> int:
    """Return the exit status after an error of an output."""
    with contextlib.suppress(OSError, ValueError):  # Python's own last flush is to be silent
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    reason = reason_of(error)
    said = say("error.no_output", reason=reason)
    if error.filename:
        said = say("error.unwritable", path=error.filename, reason=reason)
    return _told(said, _NO_OUTPUT, language)


def _internal(error: Exception) -> Sentence:
    """Return what to say of an error of ours; its traceback is in a file."""
    import tempfile
    import traceback

    name = shorten(f"{type(error).__name__}: {error}", 200)
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="probe-error-", suffix=".txt", delete=False, **_UTF8
        ) as file:
            file.write(f"{sys.version}\n{sys.argv[1:]}\n{traceback.format_exc()}")
    except OSError:
        return say("error.internal_here", error=name, traceback=traceback.format_exc())
    return say("error.internal", error=name, path=file.name)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The command line: ``probe show DIR``, ``probe compare A B`` and others, or ``python -m probe …``."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from probe.errors import ProbeError
from probe.options import OneLineParser
from probe.reading.commands.arguments import add_commands
from probe.reading.commands.findings import run_merge, run_nan, run_ranks, run_trend
from probe.reading.commands.outlet import lasting_stdout
from probe.reading.commands.show import run_check, run_compare, run_recover, run_report, run_show
from probe.reading.commands.watch import run_watch
from probe.reading.dumps.tables import why_no_output
from probe.reading.dumps.text import safe, shorten

#: exit statuses: an output cannot be written, an error of ours (EX_SOFTWARE), Ctrl-C
_NO_OUTPUT, _INTERNAL, _INTERRUPTED = 2, 70, 130
_RUNS = {
    "show": run_show, "check": run_check, "compare": run_compare, "report": run_report, "nan": run_nan,
    "ranks": run_ranks, "trend": run_trend, "watch": run_watch, "merge": run_merge, "recover": run_recover,
}  # fmt: skip
_UTF8: Any = {"encoding": "utf-8", "errors": "backslashreplace"}


def run_command(
    version: str, arguments: Sequence[str] | None = None, further: Sequence[Callable[[Any], None]] = ()
) -> int:
    """Run a command and return its exit status: 0, 1 when it could not be done, 2 for wrong arguments, 70 after a bug.

    ``arguments`` None takes those of the process. The functions in ``further`` add commands of other rooms.
    """
    parser = OneLineParser(prog="probe", description="Read and compare dumps, and check this machine.")
    parser.add_argument("--version", action="version", version=f"probe {version}")
    parser.add_argument("--json-schema", action=_Schemas, nargs=0, help="print a JSON Schema of each --json")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_commands(commands, _RUNS)
    for add in further:
        add(commands)
    for stream in (sys.stdout, sys.stderr):  # a name that the terminal cannot show is no reason to fail
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    with lasting_stdout():
        given = parser.parse_args(arguments)
        reason = why_no_output(given)
        return _told(reason, _NO_OUTPUT) if reason else _status(given)


def json_schemas() -> dict[str, Any]:
    """Return the JSON Schema of the answer of each command with ``--json``."""
    found = json.loads((Path(__file__).parent / "schemas.json").read_text(encoding="utf-8"))
    shared = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": found["$defs"]}
    return {command: {**shared, **schema} for command, schema in found["commands"].items()}


class _Schemas(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        parser.exit(_status(argparse.Namespace(run=lambda _: print(json.dumps(json_schemas(), indent=1)) or 0)))


def _status(given: argparse.Namespace) -> int:
    """Run a command that was parsed; each way to end has one form."""
    failed = int(getattr(given, "failed", 1))
    try:
        status = int(given.run(given))
        sys.stdout.flush()
        return status
    except ProbeError as error:
        return _told(str(error), failed)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except MemoryError:
        return _told("there is not enough memory", failed)
    except OSError as error:  # of an output: those of inputs end at the door
        return _dropped(error)
    except Exception as error:
        return _told(_internal(error), _INTERNAL)


def _told(reason: str, status: int) -> int:
    """Print why a command ends, and return its exit status."""
    with contextlib.suppress(OSError):
        print(f"probe: {safe(reason)}", file=sys.stderr)
    return status


def _dropped(error: OSError) -> int:
    """Return the exit status after an error of an output."""
    with contextlib.suppress(OSError, ValueError):  # Python's own last flush is to be silent
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _told(f"{error.filename or 'the output'} cannot be written: {error.strerror or error}", _NO_OUTPUT)


def _internal(error: Exception) -> str:
    """Return what to say of an error of ours; its traceback is in a file."""
    import tempfile
    import traceback

    name = shorten(f"{type(error).__name__}: {error}", 200)
    try:
        with tempfile.NamedTemporaryFile("w", prefix="probe-error-", suffix=".txt", delete=False, **_UTF8) as file:
            file.write(f"{sys.version}\n{sys.argv[1:]}\n{traceback.format_exc()}")
    except OSError:
        return f"internal error: {name}. Please report it, with this:\n{traceback.format_exc()}"
    return f"internal error: {name}. Please report it, with the file {file.name}"

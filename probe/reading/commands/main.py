# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The command line: ``probe show DIR``, ``probe compare A B`` and others, or ``python -m probe …``."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from probe.errors import ProbeError
from probe.reading.commands.check import add_check
from probe.reading.commands.compare import add_compare
from probe.reading.commands.findings import add_findings, add_merge
from probe.reading.commands.report import add_report
from probe.reading.commands.show import add_recover, add_show
from probe.reading.commands.watch import add_watch
from probe.reading.dumps.text import safe


def run_command(
    version: str, arguments: Sequence[str] | None = None, further: Sequence[Callable[[Any], None]] = ()
) -> int:
    """Run a command and return its exit status: 0, 1 when it could not be done, 2 for wrong arguments.

    Args:
        version: the version of probe.
        arguments: the words of the command line; None takes those of the process.
        further: functions that add commands of other rooms.
    """
    parser = argparse.ArgumentParser(prog="probe", description="Read and compare dumps, and check this machine.")
    parser.add_argument("--version", action="version", version=f"probe {version}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    reading = (add_show, add_check, add_compare, add_report, add_findings, add_watch, add_merge, add_recover)
    for add in (*reading, *further):
        add(commands)
    for stream in (sys.stdout, sys.stderr):  # a name that the terminal cannot show is no reason to fail
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    given = parser.parse_args(arguments)
    try:
        status = int(given.run(given))
        sys.stdout.flush()
    except ProbeError as error:
        print(f"probe: {safe(error)}", file=sys.stderr)
        return int(getattr(given, "failed", 1))
    except BrokenPipeError:  # the reader, head or less, has seen enough
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status

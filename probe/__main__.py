# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The command line: ``probe show DIR`` and ``probe recover DIR``, or ``python -m probe …``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from probe import __version__
from probe.errors import ProbeError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, 1 when it could not be done, 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="probe", description="Look at what probe has recorded.")
    parser.add_argument("--version", action="version", version=f"probe {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    show = commands.add_parser("show", help="what is in a dump", description="Show what is in a dump.")
    show.add_argument("path", help="a dump_path, or a step or rank folder in it")
    show.add_argument("--rows", type=int, default=16, help="how many tensors to list (default: 16)")
    recover = commands.add_parser(
        "recover",
        help="write the documents that a dead process could not",
        description="Turn the journals that a dead process left into dump.json, stack.json and construct.json.",
    )
    recover.add_argument("path", help="a dump_path, or a step or rank folder in it")
    given = parser.parse_args(arguments)
    try:
        if given.command == "recover":
            from probe.reading.recover import recover as save

            outcomes = save(given.path)
            for outcome in outcomes:
                print(outcome.text, file=sys.stdout if outcome.well else sys.stderr)
            return int(not all(outcome.well for outcome in outcomes))
        from probe.reading.show import show as describe

        print(describe(given.path, given.rows))
    except ProbeError as error:
        print(f"probe: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, head or less, has seen enough
        sys.stderr.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The command line: ``probe show DIR``, ``probe compare A B`` and others, or ``python -m probe …``."""

from __future__ import annotations

from collections.abc import Sequence

from probe import __version__
from probe.doctor.command import add_doctor
from probe.reading.commands.main import run_command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    return run_command(__version__, arguments, [add_doctor])


if __name__ == "__main__":
    raise SystemExit(main())

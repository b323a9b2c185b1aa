# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The command line: ``probe show DIR``, ``probe compare A B`` and others, or ``python -m probe …``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from probe import __version__
from probe.doctor.command import add_doctor
from probe.intervention import SHORT, add_interventions
from probe.launch.command import add_run, main as run_program
from probe.options import in_place
from probe.reading.commands.main import run_command
from probe.replaying.command import add_replay
from probe.search import NAME as FIND, add_find


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    words = in_place(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["run"]:
        return run_program(words[1:])
    if words and words[0] in SHORT:
        from probe.intervention.command import main as change_program  # imports numpy

        return change_program(words)
    if words[:1] == [FIND]:
        from probe.search.command import main as find_cause  # imports numpy

        return find_cause(words)
    further = [add_doctor, add_replay, add_run, add_interventions, add_find]
    return run_command(__version__, words, further)


if __name__ == "__main__":
    raise SystemExit(main())

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A program under `probe run` has the dump of the program with the user's lines, and the bits of the bare one."""

from __future__ import annotations

import pytest

from tests.support.launched import RUN, check, dump, own, place, start
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

#: program: the options of `probe run`, and the number of steps
CASES = {
    "loop": ((), 4),
    "cells": ((), 3),
    "own_cell": ((), 3),
    "scaler": ((), 4),
    "scale_cell": ((), 4),
    "model_train": ((), 6),
    "gan": ((), 4),
    "lstm": ((), 4),
    "transfer": ((), 4),
    "accumulate": ((), 2),
    "compiled": ((), 3),
    "average": ((), 3),
    "graph_mode": (("--level", "L0"), 3),
    "inference": (("--step-at", "model"), 4),
    "phases": ((), 4),
    "two_nets": ((), 2),
}


@pytest.mark.parametrize("name", thorough_but(["loop", "scaler"], list(CASES)))
def test_an_unchanged_program_has_the_dump_of_one_with_the_lines(name, tmp_path):
    options, steps = CASES[name]
    found = check([f"{name}.py"], tmp_path, options)
    assert sum(path.endswith("dump.json") for path in found) == steps


def test_updates_that_do_not_alternate_are_steps_of_their_own(tmp_path):
    folder = place(tmp_path / "run", recorded=False)
    plain, done = (
        start(folder, "critic.py"),
        start(folder, *RUN, "--level", "L0", "--dump-path", "dump", "critic.py"),
    )
    assert (done.returncode, own(done.stdout)) == (0, own(plain.stdout)), done.stderr
    found = [
        document["data"]
        for path, document in sorted(dump(folder).items())
        if path.endswith("dump.json")
    ]
    updates = [sum(".RMSProp.forward" in name for name in data) for data in found]
    assert updates == [1] * 6
    assert all(any(".backward." in name for name in data) for data in found)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Faults of real trainings are named in the first two lines, and healthy trainings are silent."""

from __future__ import annotations

import pytest

from tests.programs.one_run.faults import FAULTS
from tests.programs.one_run.healthy import TRAININGS
from tests.support import processes
from tests.support.paths import environment, program
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow
OWN = [
    name for name in TRAININGS if not name.startswith("mindcv")
]  # the package is not in the tests' environment


def answer(tmp_path, name):
    """Plant one fault, or run one healthy training, and return what was said; it must be right."""
    command = program("one_run.planted", "--only", name.replace(" ", "_"), "--keep", tmp_path)
    done = processes.run(command, capture_output=True, env=environment(), timeout=600)
    assert not done.returncode, done.stdout.decode() + done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize(
    "name", thorough_but(["stop_gradient", "evaluation without return"], list(FAULTS))
)
def test_a_planted_fault_is_named_in_the_first_two_lines(tmp_path, name):
    assert "1 of 1 faults named" in answer(tmp_path, name)


@pytest.mark.parametrize("name", thorough_but(["gan", "low_rank"], OWN))
def test_a_healthy_training_is_silent(tmp_path, name):
    assert "1 healthy trainings: 0 fault, 0 suspicious" in answer(tmp_path, name)

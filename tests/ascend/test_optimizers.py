# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Faults behind the backward are named on a device too: mint.optim.AdamW has kernels there only."""

from __future__ import annotations

import pytest

from tests.support import processes
from tests.support.paths import ROOT, environment, program

pytestmark = [pytest.mark.slow, pytest.mark.ascend]


def test_faults_behind_the_backward_are_named_and_harmless_changes_are_not():
    command = [*program("optimizers.planted"), "--device", "Ascend", "--kinds", "mint.AdamW"]
    done = processes.run(
        command, fresh="the device is another", capture_output=True, text=True, cwd=ROOT, env=environment(), check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("mint.AdamW | ")]
    assert len(lines) > 15, done.stderr[-2000:]
    assert not [line for line in lines if " | yes | " not in line]
    assert done.returncode == 0

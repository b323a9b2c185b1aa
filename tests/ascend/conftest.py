# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The simulated device of tests that plan its failures and ask it what it has seen."""

import pytest

from tests.ascend.simulator import Device


@pytest.fixture
def device():
    simulated = Device()
    simulated.plan()
    yield simulated
    simulated.plan()

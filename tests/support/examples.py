# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How many random examples a test tries."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

#: `make test-force` asks for ten times as many
EXAMPLES = int(os.environ.get("PROBE_EXAMPLES", "1000"))
MANY = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)

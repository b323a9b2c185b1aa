# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The moments of a training at which a run may change it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from probe.session.session import StepObserver


class TrainingChange(StepObserver):
    """Changes a training at these moments, and at the steps that a session tells. This one changes nothing."""

    def parameters(self, parameters: Iterable[Any]) -> None:
        """These parameters are about to be used; they may be given several times."""

    def batch(self, *values: Any) -> None:
        """These values are about to enter the step."""

# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The table of checks, in the order in which they run."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from probe.doctor.bench import Bench, CheckResult


@dataclass(frozen=True)
class DoctorCheck:
    """One check."""

    name: str
    place: str  # its function below ``probe.doctor``; the process that runs it imports it
    is_needed: bool = False  # whether the checks after it cannot run without it

    @property
    def function(self) -> Callable[[Bench], CheckResult]:
        """The function that does it."""
        found: Callable[[Bench], CheckResult] = pkgutil.resolve_name(f"probe.doctor.{self.place}")
        return found


CHECKS = (
    DoctorCheck("versions", "environment:versions", is_needed=True),
    DoctorCheck("device", "environment:device", is_needed=True),
    DoctorCheck("folder", "environment:folder"),
    DoctorCheck("private names", "environment:names"),
    DoctorCheck("memory", "memory:memory"),
    DoctorCheck("calls", "calls:forward_entries"),
    DoctorCheck("gradients", "calls:gradients"),
    DoctorCheck("compiled calls", "calls:compiled"),
    DoctorCheck("bits", "training:bits"),
    DoctorCheck("numbers", "numbers:numbers"),
    DoctorCheck("launches", "counting:launches"),
    DoctorCheck("two processes", "sharing:two_processes"),
    DoctorCheck("time", "training:time_per_call"),
)

# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The table of checks, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from probe.doctor import calls, counting, environment, memory, numbers, sharing, training
from probe.doctor.finding import Bench, Finding


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: its name.
        function: does it.
        needed: whether the checks after it cannot run without it.
    """

    name: str
    function: Callable[[Bench], Finding]
    needed: bool = False


CHECKS = (
    Check("versions", environment.versions, needed=True),
    Check("device", environment.device, needed=True),
    Check("folder", environment.folder),
    Check("private names", environment.names),
    Check("memory", memory.memory),
    Check("calls", calls.forward_entries),
    Check("gradients", calls.gradients),
    Check("compiled calls", calls.compiled),
    Check("bits", training.bits),
    Check("numbers", numbers.numbers),
    Check("launches", counting.launches),
    Check("two processes", sharing.two_processes),
    Check("time", training.time_per_call),
)

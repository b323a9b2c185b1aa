# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Whether a function of MindSpore is recorded at the moment."""

from __future__ import annotations

from probe.recording.call_stacks import is_replacement


def is_watched(function):
    """Return whether the calls of a listed function are recorded: by its code, or by a patch of its attribute."""
    return is_replacement(function.__code__) or hasattr(function, "__wrapped__")

# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The exceptions that probe raises on purpose: a wrong setting, a wrong call."""

from __future__ import annotations


class ProbeError(Exception):
    """Base of every exception that probe raises on purpose."""


class SettingsError(ProbeError, ValueError):
    """A setting is wrong; the message names the key, the value, what is allowed and the nearest right spelling."""


class UsageError(ProbeError, RuntimeError):
    """A public method was called with arguments, or in a moment, that it cannot serve."""


class NonFiniteError(ProbeError, ArithmeticError):
    """Task "nan_check" has found what it looks for, and ``on_nan`` is "raise"."""

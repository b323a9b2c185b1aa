# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The exceptions that probe raises on purpose."""

from __future__ import annotations


class ProbeError(Exception):
    """Base of every exception that probe raises on purpose."""


class SettingsError(ProbeError, ValueError):
    """A setting is wrong; the message names the file, the key, the value and the allowed values."""


class UsageError(ProbeError, RuntimeError):
    """A public method was called with arguments, or in a moment, that it cannot serve."""


class NonFiniteError(ProbeError, ArithmeticError):
    """nan_check found NaN or Inf, and ``on_nan`` is "raise"."""

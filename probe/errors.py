# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The exceptions that probe raises on purpose."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


class ProbeError(Exception):
    """Base of every exception that probe raises on purpose."""


class SettingsError(ProbeError, ValueError):
    """A setting is wrong; the message names the file, the key, the value and the allowed values."""


class UsageError(ProbeError, RuntimeError):
    """A public method was called with arguments, or in a moment, that it cannot serve."""


class NonFiniteError(ProbeError, ArithmeticError):
    """nan_check found NaN or Inf, and ``on_nan`` is "raise"."""


class AlarmError(ProbeError, ArithmeticError):
    """A rule of the monitor holds, and ``on_alarm`` is "raise"."""


class DifferenceError(ProbeError, ArithmeticError):
    """A step differs from the golden run, and ``on_difference`` is "raise"."""


def raised_at_caller(method: Method) -> Method:
    """Let the traceback of a ``ProbeError`` end at the call of this method: the frames below are the tool's."""

    @functools.wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except ProbeError as error:
            raise error.with_traceback(None) from None

    return cast(Method, run)

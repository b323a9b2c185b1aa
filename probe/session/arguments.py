# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Checks of the arguments of PrecisionDebugger's methods. Each raises a UsageError that names the allowed values."""

from __future__ import annotations

from typing import Any

from probe.capture.pynative.cells import is_cell_or_cells
from probe.capture.support_ops import SupportedApi
from probe.config.validators import is_range
from probe.errors import UsageError
from probe.naming import custom_key


def check_start(model: Any, token_range: Any, rank_id: Any) -> None:
    """Check the arguments of ``start``."""
    if token_range is not None and not is_range(token_range):
        raise UsageError(
            f"start(): token_range {token_range!r} is not allowed. Allowed: [a, b], the first and the last forward "
            "of the model to record, counted from 0."
        )
    if model is not None and not is_cell_or_cells(model):
        raise UsageError(
            f"start(): model is {type(model).__name__}. Allowed: a mindspore.nn.Cell, or a list or tuple of Cells."
        )
    if rank_id is not None and not _is_number(rank_id):
        raise UsageError(f"start(): rank_id {rank_id!r} is not allowed. Allowed: a whole number from 0.")


def check_init_step(step: Any) -> None:
    """Check the argument of ``set_init_step``."""
    if not _is_number(step):
        raise UsageError(f"set_init_step(): {step!r} is not allowed. Allowed: a whole number from 0.")


def check_save(name: Any, save_backward: Any) -> None:
    """Check the arguments of ``save``."""
    if not isinstance(name, str) or not name:
        raise UsageError(f"save(): name {name!r} is not allowed. Allowed: a text.")
    if not isinstance(save_backward, bool):
        raise UsageError(f"save(): save_backward {save_backward!r} is not allowed. Allowed: True, False.")


def custom_api(owner: Any, name: Any, prefix: Any) -> SupportedApi:
    """Return the function that the arguments of ``register_custom_api`` name."""
    prefix = getattr(owner, "__name__", "Custom") if prefix is None else prefix
    if not isinstance(prefix, str) or not prefix:
        raise UsageError(f"register_custom_api(): api_prefix {prefix!r} is not allowed. Allowed: a text.")
    function = getattr(owner, name, None) if isinstance(name, str) else None
    if not callable(function) or isinstance(function, type) or is_cell_or_cells(function):
        raise UsageError(f"register_custom_api(): {owner!r} has no function {name!r}.")
    return SupportedApi(owner, name, custom_key(prefix, name))


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0

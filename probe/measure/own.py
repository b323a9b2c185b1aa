# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The numbers of the user's own statistics. The user's function can neither change the training nor end it."""

from __future__ import annotations

import contextlib
import functools
import logging
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from probe.config.own_statistics import OwnStatistic, own_statistics
from probe.executor import OwnOperations
from probe.measure.tensor_reader import Array, local_tensor, to_numpy, to_storable

_log = logging.getLogger("probe")


class OwnNumbers:
    """Takes the registered statistics among ``names``, which are ``chosen``.

    Each function is given a copy, and random numbers of Python and numpy go on as before it.
    """

    def __init__(self, names: Iterable[str]) -> None:
        wanted = set(names)
        self.chosen = {name: own for name, own in own_statistics().items() if name in wanted}
        self.on_device = all(own.device for own in self.chosen.values())  # whether each has a function of a tensor
        self._operations: Any = OwnOperations() if self.chosen else None

    def known(self, array: Array) -> dict[str, Any]:
        """Return the numbers of an array that do not fail."""
        return {name: number for name, number in self.of_array(array).items() if number is not None}

    def of_array(self, array: Array) -> dict[str, Any]:
        """Return the numbers of an array; None for each that fails, and for all of an array without elements."""
        copy = to_storable(array).copy if array.size else None
        return {name: self._number(name, own, own.function, copy) for name, own in self.chosen.items()}

    def of_tensor(self, tensor: Any) -> dict[str, Any]:
        """Return the same of a tensor on a device, and wait for it. Nothing of the training may be pending."""
        from mindspore.ops.auto_generate import copy_op

        copy = functools.partial(copy_op, local_tensor(tensor))
        return {name: self._number(name, own, own.device, copy) for name, own in self.chosen.items()}

    def _number(self, name: str, own: OwnStatistic, function: Any, copy: Callable[[], Any] | None) -> Any:
        states, found = (random.getstate(), np.random.get_state()), None
        with contextlib.ExitStack() as stack, np.errstate(all="ignore"):
            stack.push(functools.partial(_end, name, own))
            found = copy and _plain(self._operations.run(lambda: function(copy())))
        random.setstate(states[0])
        np.random.set_state(states[1])
        return found


def _end(name: str, own: OwnStatistic, kind: Any, error: BaseException | None, trace: Any) -> bool:
    """End an error of the user's function, also ``sys.exit``; return whether it was one."""
    is_ended = isinstance(error, (Exception, SystemExit))
    if is_ended and not own.has_failed:
        own.has_failed = True
        told = "the statistic %s failed, its number is null; further failures are not told"
        _log.error(told, name, exc_info=(kind, error, trace))  # type: ignore[arg-type]
    return is_ended


def _plain(value: Any) -> int | float | bool:
    """Return a number as JSON has it; raise TypeError for what is none."""
    array = np.asarray(to_numpy(local_tensor(value)) if hasattr(value, "asnumpy") else value)
    if array.size != 1 or array.dtype.kind not in "biufV":
        raise TypeError(f"{type(value).__name__} of shape {array.shape} is no number")
    one = array.reshape(-1)[0]
    return float(one) if array.dtype.kind in "fV" else one.item()

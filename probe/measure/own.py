# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The numbers of the user's own statistics. The user's function can neither change the training nor end it."""

from __future__ import annotations

import functools
import logging
import random
from collections.abc import Callable, Iterable
from typing import Any, Union

import numpy as np

from probe.config.own_statistics import own_statistics
from probe.executor import OwnOperations
from probe.measure.tensor_reader import Array, local_tensor, to_numpy, to_storable

_log = logging.getLogger("probe")

Numbers = dict[str, Union[int, float, bool, None]]


class OwnNumbers:
    """Takes the registered statistics among ``names``; it is false where there is none.

    Each function is given a copy, and random numbers of Python and numpy go on as before it.
    """

    def __init__(self, names: Iterable[str]) -> None:
        wanted, known = set(names), own_statistics()
        self._chosen = [known[name] for name in known if name in wanted]
        #: whether each has a function of a tensor
        self.on_device = all(own.device for own in self._chosen)
        self._operations: Any = OwnOperations() if self._chosen else None

    def __bool__(self) -> bool:
        return bool(self._chosen)

    def of_array(self, array: Array) -> Numbers:
        """Return the numbers of an array; None for each that fails, and for all of an array without elements."""
        if not array.size:
            return {own.name: None for own in self._chosen}
        plain = to_storable(array)
        return {own.name: self._number(own.name, own.function, plain.copy) for own in self._chosen}

    def of_tensor(self, tensor: Any) -> Numbers:
        """Return the same of a tensor on a device, and wait for it. Nothing of the training may be pending."""
        from mindspore.ops.auto_generate import copy_op

        copy = functools.partial(copy_op, local_tensor(tensor))
        return {own.name: self._number(own.name, own.device, copy) for own in self._chosen}

    def _number(self, name: str, function: Any, copy: Callable[[], Any]) -> Any:
        states, found = (random.getstate(), np.random.get_state()), None
        with _Ended(name), np.errstate(all="ignore"):
            found = _plain(self._operations.run(lambda: _read(function(copy()))))
        random.setstate(states[0])
        np.random.set_state(states[1])
        return found


class _Ended:
    """A context in which an error of the user's function ends, also ``sys.exit``. The first one is told."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: Any) -> bool:
        if not isinstance(error, (Exception, SystemExit)):
            return False
        if own_statistics().is_first_failure(self._name):
            told = "the statistic %s failed, its number is null; further failures are not told"
            _log.error(told, self._name, exc_info=(type(error), error, trace))
        return True


def _read(value: Any) -> Any:
    return to_numpy(local_tensor(value)) if hasattr(value, "asnumpy") else value


def _plain(value: Any) -> int | float | bool:
    """Return a number as JSON has it; raise TypeError for what is none."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biufV" or isinstance(value, (bytes, np.void)):
        raise TypeError(f"{type(value).__name__} of shape {array.shape} is no number")
    one = array.reshape(-1)[0]
    return float(one) if array.dtype.kind in "fV" else one.item()

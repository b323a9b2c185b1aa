# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""seed_all: a training that repeats itself."""

from __future__ import annotations

import functools
import importlib
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

from probe.errors import UsageError

#: the largest seed that numpy takes
LARGEST = 2**32 - 1
#: marks the stand-in for a dropout, so that it is found again and taken out without remembering anything
_MARK = "probe_stands_in_for"


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False) -> None:
    """Make a training repeat itself: call it before the model and the data are made.

    Args:
        seed: from 0 to 2**32 - 1, for Python, numpy, MindSpore, its initializers and generators; the seed of
            Python's hashes is set for processes that are started from here.
        mode: whether kernels and collectives are deterministic too, which may make them slower.
        rm_dropout: whether every dropout becomes an identity: those of nn, ops, mint and their Primitives, in 1, 2 and
            3 dimensions. False puts them back. Functions that were imported by name before are not reached, nor are
            Primitives that were made before.

    Raises:
        UsageError: for a seed out of range, and for anything but True and False.

    Example::

        from probe import seed_all
        seed_all(1234, mode=True, rm_dropout=True)
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LARGEST:
        raise UsageError(
            f"seed_all(): seed {seed!r} is not allowed. Allowed: a whole number from 0 to {LARGEST}."
        )
    for name, value in (("mode", mode), ("rm_dropout", rm_dropout)):
        if not isinstance(value, bool):
            raise UsageError(f"seed_all(): {name} {value!r} is not allowed. Allowed: True, False.")
    import mindspore
    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    mindspore.set_seed(seed)
    mindspore.manual_seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    os.environ["HCCL_DETERMINISTIC"] = str(mode).lower()
    wanted = "ON" if mode else "OFF"
    if (
        mindspore.get_context("deterministic") != wanted
    ):  # mindspore.set_deterministic can be called only once
        mindspore.set_context(deterministic=wanted)
    for owner, name, stand_in in _dropouts():
        current = vars(owner)[name]
        if rm_dropout and not hasattr(current, _MARK):
            replacement = stand_in(current)
            setattr(replacement, _MARK, current)
            setattr(owner, name, replacement)
        elif not rm_dropout and hasattr(current, _MARK):
            setattr(owner, name, getattr(current, _MARK))


def _dropouts() -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    """Yield (owner, name, maker of the stand-in) for every form of dropout that this MindSpore has."""
    for path, names, method, stand_in in _DROPOUTS:
        module = importlib.import_module(path)
        for name in names.split():
            if hasattr(module, name):
                yield (
                    (getattr(module, name), method, stand_in)
                    if method
                    else (module, name, stand_in)
                )


def _keeping_all(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def __init__(self: Any, keep_prob: float = 0.5, *args: Any, **kwargs: Any) -> None:
        original(self, 1.0, *args, **kwargs)

    return __init__


def _identity_of_cell(original: Callable[..., Any]) -> Callable[..., Any]:
    def construct(self: Any, x: Any) -> Any:
        return x

    return construct


def _identity(original: Callable[..., Any]) -> Callable[..., Any]:
    def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        return input

    return dropout


#: module, names in it, method that is replaced (none for a function), maker of its stand-in
_DROPOUTS = (
    # Primitives, whose keep_prob becomes 1: ops.dropout, dropout1d, dropout2d and dropout3d make one for each call
    ("mindspore.ops.operations", "Dropout Dropout2D Dropout3D", "__init__", _keeping_all),
    # Cells, which return their input, also those that were made before
    (
        "mindspore.nn.layer.basic",
        "Dropout Dropout1d Dropout2d Dropout3d",
        "construct",
        _identity_of_cell,
    ),
    ("mindspore.nn.layer.basic", "DropoutExt Dropout2dExt", "construct", _identity_of_cell),
    # functions that run a kernel of their own
    ("mindspore.ops.function.nn_func", "dropout_ext dropout2d_ext", "", _identity),
    ("mindspore.mint.nn.functional", "dropout dropout2d", "", _identity),
)

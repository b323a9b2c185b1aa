# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""How numbers are obtained: one small interface, and which of its kinds serves here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from probe.measure.tensor_reader import Array

#: saves one array under a name (without ending) and returns the file's name, or "" where it was not saved
Save = Callable[[str, Array], str]
#: ends an error of the tool: where it happened, and the error
Trouble = Callable[[str, BaseException], object]


class MeasureError(Exception):
    """An operation of the tool's own failed, and not because of one of the training's that was still pending."""


class Measurer(Protocol):
    """How numbers are obtained. Whoever takes them, the record is the same.

    Attributes:
        at_once: records are complete when they are returned, and tensors must be too before they are given.
        full: ``collect`` is due.
    """

    at_once: bool
    full: bool

    def tensor(self, tensor: Any, name: str, save: Save | None) -> Any:
        """Return the record of one tensor as it is now.

        Args:
            tensor: a mindspore Tensor or Parameter.
            name: the file name, without its ending, that its array would have.
            save: writes the array, where one is wanted.

        Returns:
            ``{"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2], "Max": …, "Min": …, "Mean": …, "Norm": …}``
        """

    def sum(self) -> Any:
        """Return a new sum of gradients, with ``add`` and ``take_from``."""

    def total(self, total: Any, name: str, save: Save | None) -> Any:
        """Return the record of such a sum."""

    def collect(self, trouble: Trouble) -> None:
        """Complete the records that were returned; what runs asynchronously must have ended."""

    def forget(self) -> None:
        """Let go of what was remembered; the step is over."""

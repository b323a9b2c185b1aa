# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Notes Cells with trainable parameters that a step calls, and that no model given to ``start`` holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from probe.layers.layer import modules_of, own_parameters
from probe.recording.step_recorder import StepRecorder

#: a training may make new Cells in each call: no more of them are held
_MOST_CELLS = 300


class OutsideCells:
    """The Cells outside of some models that were called."""

    def __init__(self, cells: list[tuple[str, Any]], name_of: Callable[[Any], str]) -> None:
        """``cells`` are those of the models; ``name_of`` returns the one name of a parameter object."""
        from mindspore import nn

        self._cells = {id(cell): cell for _, cell in cells}  # held: identities stay unique
        self._known = dict(self._cells)  # these, and the others that were looked at
        #: `probe run` starts with a Cell that holds nothing, until it has found the model
        self._has_model = any(type(cell) is not nn.Cell for cell in self._cells.values())
        self._name_of = name_of

    def note(self, recorder: StepRecorder, cell: Any) -> None:
        """Note a Cell that is called. It costs little where it was noted, or has no parameters of its own.

        A frozen Cell is not held, and looked at again: it may be trained later.
        """
        if (
            id(cell) in self._known
            or not own_parameters(cell)
            or recorder.snapshot is None
            or not self._has_model
        ):
            return
        with recorder.guard("noting a Cell outside of the model"):
            trained = [
                it for it in own_parameters(cell).values() if it is not None and it.requires_grad
            ]
            if not trained or len(self._known) - len(self._cells) == _MOST_CELLS:
                return
            self._known[id(cell)] = cell
            if not self._is_around(cell):
                recorder.snapshot.outside(
                    type(cell).__name__, [self._name_of(it) for it in trained]
                )

    def _is_around(self, cell: Any) -> bool:
        """Return whether a Cell holds a Cell of the models, as one that trains a model does."""
        return any(id(below) in self._cells for _, below in modules_of(cell))

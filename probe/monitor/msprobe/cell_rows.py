# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The inputs and outputs of Cells and their gradients, under the names of msprobe's monitor."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from probe.config.settings import Settings
from probe.monitor.cell_values import CellValues
from probe.monitor.msprobe.config import TrainerConfig
from probe.monitor.msprobe.names import Models, Name
from probe.monitor.msprobe.watched import Watched
from probe.series.series_name import Slot
from probe.store.error_log import ErrorLog

#: takes the kind, the name, the tensor and the number of the part of the step
Note = Callable[[str, Name, Any, str], None]
#: a name, and the number of the part of the step
Place = tuple[Name, str]
Item = TypeVar("Item")


class CellRows:
    """Watches Cells in the steps that are measured.

    Args:
        config: the settings of TrainerMon.
        watched: the parts of the training.
        cells: the Cells with their names, by the keys of their calls; see ``chosen_cells``.
        errors: reports errors of the tool.
        folder: the folder of the log of errors.
    """

    def __init__(
        self,
        config: TrainerConfig,
        watched: Watched,
        cells: Mapping[str, tuple[Name, Any]],
        errors: ErrorLog,
        folder: str,
    ) -> None:
        wanted = "|".join(map(re.escape, cells))
        modes = {"input", "output", "forward", "backward"}
        modes -= {"backward"} if config.forward_only else {"forward"} if config.backward_only else set()
        settings = Settings(
            level="L0",
            extra_info=False,
            optimizer="off",
            snapshot=False,
            list=(f"name-regex(^(?:{wanted})\\.(?:forward|backward)\\.)",),
            data_mode=frozenset(modes),
        )
        self._cells, self._models, self._accumulated = cells, Models(watched.models), watched.accumulated
        self._values = CellValues(settings, folder, errors, self._take)
        self._parts: dict[tuple[str, str], str] = {}  # (key, number of the call) -> part of the step
        self._counts: dict[str, int] = {}
        self._note: Note | None = None

    def begin(self, note: Note) -> None:
        """Begin to watch a step."""
        self._note = note
        self._values.install(self._models)

    def end(self) -> None:
        """End the step, and watch nothing."""
        self._note = None
        self._parts.clear()
        self._counts.clear()
        self._values.end_step()

    def _take(self, slot: Slot, tensor: Any) -> None:
        """Take a tensor, or the gradient of one."""
        if slot.cell not in self._cells or self._note is None:
            return
        name, cell = self._cells[slot.cell]
        part = self._part(slot.cell, slot.call, cell)
        if part is not None:
            kind = "actv_grad" if slot.is_backward else "actv"
            self._note(kind, Name(name.stage, f"{name.name}.{slot.in_cell}"), tensor, part)

    def _part(self, key: str, number: str, cell: Any) -> str | None:
        """Return the part of the step that a call belongs to; None for a call that trains nothing."""
        part = self._parts.get((key, number))
        if part is None and cell.training:
            count = self._counts[key] = self._counts.get(key, -1) + 1
            part = self._parts[key, number] = str(count % self._accumulated)
        return part


def without_lone_numbers(rows: dict[Place, Item]) -> dict[Place, Item]:
    """Return the rows of Cells; the number of a tensor that is alone on its side is no part of its name.

    >>> list(without_lone_numbers({(Name(0, "fc.input_0"), "0"): 1}))
    [(Name(stage=0, name='fc.input'), '0')]
    """
    found = {}
    for (name, part), row in rows.items():
        beginning, _, number = name.name.rpartition("_")
        is_alone = number == "0" and (name._replace(name=f"{beginning}_1"), part) not in rows
        found[name._replace(name=beginning) if is_alone else name, part] = row
    return found

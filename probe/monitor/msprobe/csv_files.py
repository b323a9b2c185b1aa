# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The csv files of TrainerMon, with the names and columns of msprobe's monitor."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence

from probe.monitor.msprobe.measuring import Cell, Cells
from probe.monitor.msprobe.names import Name
from probe.naming import escape_formula
from probe.store import file_io

#: name and number of the part of the step ("" where the file has none) -> the numbers
Rows = Mapping[tuple[Name, str], Cells]
HEADER = ("vpp_stage", "name", "step")


class CsvFiles:
    """Appends the rows of steps to the files of one rank.

    Args:
        folder: their folder, which is made with the first row.
        ops: the last columns.
        digits: the decimals of a number.
        steps: the number of steps of one file.
    """

    def __init__(self, folder: str, ops: Sequence[str], digits: int, steps: int) -> None:
        self._folder, self._ops, self._digits, self._steps = folder, ops, digits, steps

    def write(self, kind: str, step: int, rows: Rows) -> None:
        """Append the rows of one step.

        Args:
            kind: the beginning of the file's name.
            step: the step.
            rows: the rows.
        """
        if not rows:
            return
        first = step - step % self._steps
        path = os.path.join(file_io.make_dirs(self._folder), f"{kind}_{first}-{first + self._steps - 1}.csv")
        parted = any(micro for _, micro in rows)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not os.path.exists(path):
            writer.writerow([*HEADER, *(["micro_step"] if parted else []), *self._ops])
        for (name, micro), cells in rows.items():
            place = [name.stage, escape_formula(name.name), step, *([micro] if parted else [])]
            writer.writerow([*place, *self._shown(cells)])
        file_io.append(path, text.getvalue())

    def _shown(self, cells: Iterable[Cell]) -> Iterable[Cell]:
        for cell in cells:
            if isinstance(cell, float):
                yield "nan" if math.isnan(cell) else round(cell, self._digits)
            else:
                yield cell

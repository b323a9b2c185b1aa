# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads the csv files of msprobe's TrainerMon as series: ``probe watch`` and ``probe trend`` take its folder."""

from __future__ import annotations

import csv
import os

import numpy as np

from probe.door import open_text, table_lines
from probe.errors import UsageError
from probe.series.file import MOST_STEP, NOT_MEASURED_BITS, RankSeries
from probe.store.file_names import TRAINER_CSV

#: the beginning of a file's name -> the form of the names of series; other files are named by themselves
_FORMS = {
    "grad_unreduced": "{name}.grad", "grad_reduced": "{name}.grad_in", "param_updated": "{name}.param",
    "exp_avg": "optimizer.moment1.{name}", "exp_avg_sq": "optimizer.moment2.{name}",
}  # fmt: skip
_STATISTICS = {"norm": "", "max": ".max", "min": ".min"}


class CsvSeries(RankSeries):
    """The series of one rank; raise UsageError when a file cannot be read."""

    def _read(self) -> None:
        rows: dict[int, dict[str, float]] = {}
        for file in sorted(os.listdir(self.path)):
            if kind := TRAINER_CSV.fullmatch(file):
                _add(os.path.join(self.path, file), kind[1], rows)
        names = ("step", *dict.fromkeys(name for row in rows.values() for name in row))
        table = np.full((len(rows), len(names)), NOT_MEASURED_BITS, np.uint32).view(np.float32)
        places = {name: place for place, name in enumerate(names)}
        for line, step in enumerate(sorted(rows)):
            table[line, 0] = step
            for name, value in rows[step].items():
                table[line, places[name]] = value
        self._tables = [(names, table)]


def _add(path: str, kind: str, rows: dict[int, dict[str, float]]) -> None:
    """Add the numbers of a file to the rows of its steps: step -> name -> number."""
    form = _FORMS.get(kind, f"{{name}}.{kind}")
    try:
        with open_text(path, "replace", "") as file:
            for row in csv.DictReader(table_lines(file)):
                name = form.format(name=".".join(filter(None, (row.get("name"), row.get("micro_step")))))
                try:
                    step = int(row["step"])
                    numbers = {name + end: float(row[key]) for key, end in _STATISTICS.items() if row.get(key)}
                except (KeyError, TypeError, ValueError):  # a row that is cut
                    continue
                if 0 <= step < MOST_STEP:
                    rows.setdefault(step, {}).update(numbers)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except csv.Error as error:
        raise UsageError(f"{path} cannot be read: {error}") from None

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The csv files of msprobe's monitor: TrainerMon appends each step, ``probe watch`` writes and reads whole series."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping
from typing import TypeVar, Union

import numpy as np

from probe.door import open_text, table_lines
from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import reason_of
from probe.naming import ADAM_STATES, escape_formula
from probe.series.file import MOST_STEP, NOT_MEASURED_BITS, RankSeries
from probe.series.series_name import FEATURES, parse, slot_of
from probe.store import file_io
from probe.store.file_names import TRAINER_CSV

Cell = Union[float, str, None]  # a number, a text, or None where there is no number
#: the number of the model, ":" and the name of a parameter or Cell; the number of the part of the step, or ""
Place = tuple[str, str]
Rows = Mapping[Place, Mapping[str, Cell]]  # of one step: place -> column -> number
Tables = dict[str, Rows]  # of one step: the beginning of the file's name -> its rows
Item = TypeVar("Item")
#: the files of the features that ``l2_targets`` asks for
L2_HOOKS = ("attention_hook", "linear_hook", "moe_router_weight_hook", "moe_router_logit_hook")
_OF_CELLS = ("actv", "actv_grad")  # the kinds of Cells
_Series = dict[
    str, dict[Place, dict[int, dict[str, float]]]
]  # kind -> place -> step -> column -> number
#: the beginning of a file's name -> the form of the names of series; other files are named by themselves
_FORMS = {
    "grad_unreduced": "{name}.grad",
    "grad_reduced": "{name}.grad_in",
    "param_updated": "{name}.param",
    "exp_avg": "optimizer.moment1.{name}",
    "exp_avg_sq": "optimizer.moment2.{name}",
    **dict.fromkeys((*L2_HOOKS, "tokens_per_expert", "mg_direction"), "{name}"),
}
_STATISTICS = {"norm": "", "max": ".max", "min": ".min", **{name: f".{name}" for name in FEATURES}}


class CsvFiles:
    """Appends the rows of steps to the files of one rank, each of so many ``steps``, with ``digits`` decimals."""

    def __init__(self, folder: str, digits: int, steps: int) -> None:
        self._folder = folder
        self._digits = digits
        self._steps = steps

    def write(self, step: int, tables: Tables) -> None:
        """Append the rows of one step."""
        first = step - step % self._steps
        for kind, rows in tables.items():
            path = os.path.join(
                file_io.make_dirs(self._folder), f"{kind}_{first}-{first + self._steps - 1}.csv"
            )
            file_io.append(path, _text({step: rows}, not os.path.exists(path), self._digits))


def _text(steps: Mapping[int, Rows], has_header: bool, digits: int | None = None) -> str:
    """Return the rows of one file or of a part of it, all with the same columns."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    parted = any(part for rows in steps.values() for _, part in rows)
    for step, rows in steps.items():
        for (name, part), numbers in rows.items():
            if has_header:
                writer.writerow(
                    ["vpp_stage", "name", "step", *(["micro_step"] if parted else []), *numbers]
                )
                has_header = False
            stage, _, own = name.partition(":")
            place = [stage, escape_formula(own), step, *([part] if parted else [])]
            writer.writerow([*place, *(_shown(number, digits) for number in numbers.values())])
    return text.getvalue()


def _shown(number: Cell, digits: int | None) -> Cell:
    if not isinstance(number, float):
        return number
    return "nan" if math.isnan(number) else number if digits is None else round(number, digits)


def without_lone_numbers(kind: str, rows: Mapping[Place, Item]) -> Mapping[Place, Item]:
    """Return the rows of a kind; the number of a Cell's tensor that is alone on its side is no part of its name.

    >>> list(without_lone_numbers("actv", {("0:fc.input_0", "0"): 1}))
    [('0:fc.input', '0')]
    """
    found = {}
    for (name, part), row in rows.items():
        beginning, _, number = name.rpartition("_")
        is_alone = number == "0" and (f"{beginning}_1", part) not in rows
        found[beginning if is_alone else name, part] = row
    return found if kind in _OF_CELLS else rows


# -- the series of the monitor ----------------------------------------------------------------------------------------


def write_msprobe_csv(ranks: Iterable[RankSeries], folder: str) -> list[str]:
    """Write csv files as msprobe's monitor does, in a folder for each rank; return their paths, or raise UsageError."""
    written: list[str] = []
    for rank in ranks:
        own = os.path.join(folder, f"rank{rank.rank or 0}")
        tables: _Series = {}
        for name in sorted(
            rank.names, key=lambda name: ".grad_in" in name
        ):  # it replaces the one that arrived
            for kind, place, column in _places(name):
                steps = tables.setdefault(kind, {}).setdefault(place, {})
                for step, value in zip(*(values.tolist() for values in rank[name])):
                    steps.setdefault(step, {})[column] = value
        try:
            os.makedirs(own, exist_ok=True)
            written += [
                _write(own, kind, without_lone_numbers(kind, table))
                for kind, table in tables.items()
            ]
        except OSError as error:
            raise UsageError(say("error.unwritable", path=own, reason=reason_of(error))) from error
    return written


def _places(name: str) -> list[tuple[str, Place, str]]:
    """Return the places of a series in msprobe's files: kind, place, column."""
    series = parse(name)
    slot = slot_of(name)
    column = series.statistic
    place = (f"0:{series.owner}", "")
    if slot is not None:
        return [(_OF_CELLS[slot.is_backward], (f"0:{slot.path}.{slot.in_cell}", slot.call), column)]
    if series.kind == "grad":
        both = [("grad_unreduced", place, column)]
        return both if column != "norm" else [*both, ("grad_reduced", place, column)]
    kinds = {"grad_in": "grad_reduced", "param": "param_updated", "bias": "param_updated"}
    kind = kinds.get(series.kind) or ADAM_STATES.get(series.state, "")
    return [(kind, place, column)] if kind else []


def _write(folder: str, kind: str, table: Mapping[Place, dict[int, dict[str, float]]]) -> str:
    steps = sorted({step for rows in table.values() for step in rows})
    known = {column for rows in table.values() for row in rows.values() for column in row}
    columns = [column for column in ("norm", "max", "min") if column in known]
    rows: dict[int, Rows] = {}
    for step in steps:
        found = {place: own[step] for place, own in table.items() if step in own}
        rows[step] = {
            place: {column: own.get(column) for column in columns} for place, own in found.items()
        }
    path = os.path.join(folder, f"{kind}_{min(steps, default=0)}-{max(steps, default=0)}.csv")
    file_io.write(path, _text(rows, has_header=True).encode())
    return path


# -- csv files as series -----------------------------------------------------------------------------------------------


class CsvSeries(RankSeries):
    """The series of one rank, read of the csv files of TrainerMon; raise UsageError when a file cannot be read."""

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
    form = _FORMS.get(kind, f"{{name}}.{kind}")
    try:
        with open_text(path, "replace", "") as file:
            for row in csv.DictReader(table_lines(file)):
                name = form.format(
                    name=".".join(filter(None, (row.get("name"), row.get("micro_step"))))
                )
                try:
                    step = int(row["step"])
                    numbers = {
                        name + end: float(row[key])
                        for key, end in _STATISTICS.items()
                        if row.get(key)
                    }
                except (KeyError, TypeError, ValueError):  # a row that is cut
                    continue
                if 0 <= step < MOST_STEP:
                    rows.setdefault(step, {}).update(numbers)
    except (OSError, csv.Error) as error:
        raise UsageError(say("error.unreadable", path=path, reason=reason_of(error))) from None

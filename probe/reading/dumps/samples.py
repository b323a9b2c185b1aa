# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One statistic of many tensors, of all steps and ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.dumps.dump import Dump, look_into_dump
from probe.reading.dumps.entry_name import GRADIENT, parse
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.names import Names
from probe.reading.dumps.updates import is_update, series as series_of
from probe.reading.dumps.values import (
    SHOWN,
    Record,
    count_of,
    greatest,
    real,
    tensors,
)
from probe.reading.dumps.work import HERE, Workers, run_units
from probe.series.dump_rules import Points, Trend
from probe.series.history import Point
from probe.store.file_names import Rank

_LARGEST = {"Float16": 65504.0, "BFloat16": 3.3895313892515355e38}
#: the tensors that are shown unless others are asked for
LIKE = "parameters_grad"
NORM = "Norm"  # the statistic of most series
STATISTICS = {key.lower(): key for key in (*SHOWN, "zero_count")}


class Samples(NamedTuple):
    """The numbers of one step of one rank."""

    step: (
        int | None
    )  # the step; None where the folder does not say, so that the numbers belong to no series
    rank: Rank
    values: dict[str, float]  # tensor -> the statistic
    points: dict[str, Point]  # tensor -> further numbers
    error: Sentence = NOTHING  # the reason why the dump could not be read
    lost: Sentence = NOTHING  # what could not be read of it


def read_samples(folder: DumpFolder, names: Names, key: str) -> Samples:
    """Return a statistic of the tensors of a dump that are asked for."""

    def found(dump: Dump) -> Samples:
        return samples_of(dump, folder.step, names, key)

    return look_into_dump(
        folder, found, lambda reason: Samples(folder.step, folder.rank, {}, {}, reason)
    )


def samples_of(dump: Dump, step: int | None, names: Names, key: str) -> Samples:
    """Return a statistic of the tensors of a dump that was read; without a step there are no numbers."""
    values: dict[str, float] = {}
    points: dict[str, Point] = {}
    gradients = _in_step(dump)
    cells = _cells(dump) if names.cell else {}
    for name, record in dump.tensors() if step is not None else ():
        value = real(record.get(key)) if names.fits(name, cells.get(name, "")) else None
        if value is not None:
            shown = _without_states(dump, gradients.get(name) or name)
            values[shown] = value
            points[shown] = point(record)
    if step is not None and key == NORM:
        values.update(_of_updates(dump, names))
    return Samples(step, dump.rank, values, points, NOTHING, dump.document.lost)


def point(record: Record) -> Point:
    """Return the further numbers of a record.

    >>> point({"dtype": "Float16", "shape": [4], "Max": 65504.0, "Min": 0.0, "zero_count": 3})[:3]
    (4, 0.75, 1.0)
    """
    count = count_of(record) or 0
    zeros = real(record.get("zero_count"))
    largest = _LARGEST.get(str(record.get("dtype")).rpartition(".")[2])
    return Point(
        size=count,
        zeros=None if zeros is None or not count else zeros / count,
        peak=greatest(record) / largest if largest else 0.0,
        highest=real(record.get("Max")) or 0.0,
    )


def _in_step(dump: Dump) -> dict[str, str]:
    """Return the gradients of parameters by the order within their step: msprobe's numbers go on over the steps."""
    found: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for name, entry in dump.data.items():
        parts = parse(name)
        if parts.kind == GRADIENT and name.endswith(f".{parts.number}"):
            own = f"{parts.key}.{GRADIENT}.{counts[parts.key]}"
            counts[parts.key] += 1
            if own != name:
                found.update({f"{name}{place}": f"{own}{place}" for place, _ in tensors("", entry)})
    return found


def _without_states(dump: Dump, name: str) -> str:
    """Return the name of a tensor; the states of an optimizer are not called parameters."""
    entry, separator, rest = name.partition(".parameters.")
    is_state = separator and is_update(parse(entry), dump.data.get(entry))
    return f"{entry}.states.{rest}" if is_state else name


def _cells(dump: Dump) -> dict[str, str]:
    """Return the paths of the Cells of each tensor: of its own, and of the one around it."""
    return {
        tensor.name: f"{call.parts.path or ''} {call.cell or ''}"
        for call in dump
        for tensor in call.tensors()
    }


def _of_updates(dump: Dump, names: Names) -> dict[str, float]:
    """Return learning rates and global norms of updates: where they are asked for, and beside gradients."""
    found = {}
    for name, entry in dump.data.items():
        if is_update(parse(name), entry):
            is_default = names == Names(LIKE)
            found.update(
                {
                    key: value
                    for key, value in series_of(name, entry)
                    if is_default or names.fits(key)
                }
            )
    return found


def read_all(
    folders: Sequence[DumpFolder], names: Names, stat: str = "norm", workers: Workers = HERE
) -> list[Samples]:
    """Return a statistic of the tensors of many dumps that are asked for.

    A statistic may be any key of the records. Raise UsageError when no dump can be read.
    """
    units = [(folder, names, STATISTICS.get(stat.lower(), stat)) for folder in folders]
    found = list(run_units(read_samples, units, workers, say("progress.reading")))
    if found and all(sample.error for sample in found):
        raise UsageError(found[0].error)
    return found


def series(samples: Sequence[Samples]) -> tuple[Trend, Points]:
    """Return the samples as series, name -> rank -> step -> number, and likewise the further numbers."""
    found: Trend = {}
    points: Points = {}
    for sample in samples:
        if sample.step is None:
            continue
        for name, value in sample.values.items():
            found.setdefault(name, {}).setdefault(sample.rank, {})[sample.step] = value
            if name in sample.points:
                points.setdefault(name, {}).setdefault(sample.rank, {})[sample.step] = (
                    sample.points[name]
                )
    return found, points


def collect(folders: Sequence[DumpFolder], like: str, stat: str = "norm") -> Trend:
    """Return name -> rank -> step -> number of tensors that fit; raise UsageError for none, or a broken dump."""
    samples = read_all(folders, Names(like), stat)
    if error := next((sample.error for sample in samples if sample.error), NOTHING):
        raise UsageError(error)
    found, _ = series(samples)
    if not found:
        raise UsageError(no_tensor(Names(like), stat))
    return found


def no_tensor(names: Names, stat: str) -> Sentence:
    """Return the message where no tensor fits."""
    asked = " ".join(f"--{option} {text}" for option, text in names._asdict().items() if text)
    asked = asked or '--name ""'
    if stat.lower() not in STATISTICS:
        return say("error.statistic", stat=stat, allowed=list(STATISTICS), asked=asked)
    return say("error.no_tensor", stat=stat, asked=asked)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe.open``: a run on disk, its steps and ranks, read when they are touched; and its size with arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, overload

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.naming import BACKWARD, FORWARD, call_names, cell_names
from probe.reading.dumps import text
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.folders import DumpFolder, find_folders
from probe.reading.dumps.values import Record, count_of
from probe.store import file_names
from probe.store.file_names import Rank

if TYPE_CHECKING:
    from probe.reading.dumps.tables import Table
    from probe.series.dump_rules import Trend
    from probe.series.file import Series

#: the size of numpy's header, and of the key in dump.json that names the file
_HEADER = 128
_KEY = len(',\n      "data_name": ".npy"')
_SINGLE = ("BFloat16", "Float8E4M3FN", "Float8E5M2", "HiFloat8")
_SIZES = {"Bool": 1, "Int4": 1, "Complex64": 8, "Complex128": 16, **dict.fromkeys(_SINGLE, 4)}


class Run:
    """All dumps below a folder. One at a time is kept in memory.

    Example::

        run = probe.open("dump_path")
        for dump in run:
            print(dump.step, dump.rank, len(dump))
    """

    def __init__(self, path: str, folders: list[DumpFolder]) -> None:
        self.path = path
        self.folders = folders
        self._last: Dump | None = None

    @property
    def steps(self) -> list[int]:
        """The recorded steps."""
        return sorted({folder.step for folder in self.folders if folder.step is not None})

    @property
    def ranks(self) -> list[Rank]:
        """The recorded ranks; [None] where communication was not initialised."""
        return list(dict.fromkeys(folder.rank for folder in self.folders))

    def dump(self, step: int | None = None, rank: Rank = None) -> Dump:
        """Return the dump of a step and rank; each may be left out where there is only one, or the first is meant.

        Raises:
            UsageError: when there is none.
        """
        for folder in self.folders:
            if (step is None or folder.step == step) and (rank is None or folder.rank == rank):
                if self._last is None or self._last.folder != folder:
                    self._last = Dump(folder)
                return self._last
        raise UsageError(missing(self, step, rank))

    def __getitem__(self, step: int) -> Dump:
        return self.dump(step)

    def __iter__(self) -> Iterator[Dump]:
        for folder in self.folders:
            yield Dump(folder)

    def __len__(self) -> int:
        return len(self.folders)

    def table(self) -> Table:
        """Return one row for each tensor of each dump, read while it is iterated.

        Example::

            for row in run.table():
                print(row["step"], row["call"], row["place"], row["Norm"])
        """
        from probe.reading.dumps.tables import Table, tensor_rows

        return Table(lambda: (row for dump in self for row in tensor_rows(dump)))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table as csv; texts that a spreadsheet would take for a formula are quoted."""
        self.table().to_csv(path)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the table as columns."""
        return self.table().to_dict()

    def to_pandas(self) -> Any:
        """Return the table as a pandas.DataFrame; needs pandas."""
        return self.table().to_pandas()

    def to_polars(self) -> Any:
        """Return the table as a polars.DataFrame; needs polars."""
        return self.table().to_polars()

    def trend(self, like: str, stat: str = "norm") -> Trend:
        """Return one statistic of the tensors whose names contain ``like``, over steps and ranks.

        Example::

            for name, series in run.trend("parameters_grad", stat="norm").items():
                print(name, series)
        """
        from probe.reading.dumps.samples import collect

        return collect(self.folders, like, stat)

    @overload
    def series(self, name: str, number: None = None, *, rank: Rank = None) -> Series: ...

    @overload
    def series(self, name: str, number: int, *, rank: Rank = None) -> dict[str, Series]: ...

    def series(
        self, name: str, number: int | None = None, *, rank: Rank = None
    ) -> Series | dict[str, Series]:
        """Return one series of the monitor, or with ``number`` all series of one call of rolling records.

        Args:
            name: its name, as "loss" or "fc.weight.grad"; ``probe watch`` lists them. Of a call its name without number
                and direction, as "Functional.relu" or "Cell.fc.Dense".
            number: the number of the call in a step, from 0.
            rank: the rank; None for the first.

        Returns:
            The steps and the values; of a call by their places, as "forward.output.0.norm".

        Raises:
            UsageError: when there is none.

        Example::

            steps, values = probe.open("dump_path").series("loss")
            steps, values = probe.open("dump_path").series("Functional.relu", 0)["forward.output.0.norm"]
        """
        from probe.series.series import open_series

        ranks = open_series(self.path)
        found = next((item for item in ranks if rank is None or item.rank == rank), ranks[0])
        if number is not None:
            heads = {
                f"{head}.": direction
                for names in (call_names(name, number), cell_names(name, number))
                for head, direction in zip(names, (FORWARD, BACKWARD))
            }
            own = {
                f"{direction}.{place[len(head) :]}": found[place]
                for place in found.names
                for head, direction in heads.items()
                if place.startswith(head)
            }
            if own:
                return own
            name = f"{name}.{number}"
        elif name in found.names:
            return found[name]
        raise UsageError(f"series: {name!r} is not there. Some that are: {shortened(found.names)}")

    def __repr__(self) -> str:
        return f"<Run {self.path}: steps {shortened(self.steps)}, ranks {shortened(self.ranks)}>"

    def _repr_html_(self) -> str:
        return text.html_table((folder.label, folder.path) for folder in self.folders)


def known(run: Run) -> Sentence:
    """Return which steps and ranks a run has, for messages."""
    if not run.folders:
        return say("known.none")
    ranks = [rank for rank in run.ranks if rank is not None]
    told = clauses(
        say("known.steps", steps=shortened(run.steps)) if run.steps else NOTHING,
        say("known.ranks", ranks=shortened(ranks)) if ranks else NOTHING,
    )
    return say("known.are", parts=told) if told else say("known.no_step")


def missing(run: Run, step: object, rank: object) -> Sentence:
    """Return that a run has no dump of a step and a rank, of which each may be "" or None, and which it has."""
    asked_step = NOTHING if step in ("", None) else say("known.of_step", step=step)
    asked_rank = NOTHING if rank in ("", None) else say("known.of_rank", rank=rank)
    return say(
        "error.no_such_dump", path=run.path, step=asked_step, rank=asked_rank, known=known(run)
    )


def shortened(numbers: list[Any]) -> str:
    """Return a list of numbers, long ones by their ends.

    >>> shortened([0, 1, 2]), shortened(list(range(100)))
    ('0, 1, 2', '0, 1, 2, ..., 99')
    """
    shown = [str(number) for number in numbers]
    return ", ".join(shown if len(shown) < 7 else [*shown[:3], "...", shown[-1]])


def open(path: str | os.PathLike[str]) -> Run:
    """Open the dumps below a folder; nothing is read yet but the names of the folders.

    Args:
        path: a dump_path, a step or rank folder in it, or a dump.json. Dumps of msprobe are read too.

    Raises:
        UsageError: when there is no dump.

    Example::

        run = probe.open("dump_path")
        run.steps, run.ranks
        run[0]["Functional.softmax.1.forward"].outputs["0"].max
    """
    path = os.fspath(path)
    from probe.series.series import find_series

    try:
        return Run(path, find_folders(path))
    except UsageError:
        if not find_series(path):
            raise
        return Run(path, [])  # a monitor that has raised no alarm


def estimate(folder: str, exact_dtypes: bool = False, link_equal: bool = True) -> int:
    """Return how many bytes the files of a rank folder of task statistics would have with the array of every tensor.

    If ``exact_dtypes``, bfloat16 would be stored as it is; if ``link_equal``, arrays of equal bytes would be one file.
    Tensors of equal numbers stand for them here. Raise UsageError when the dump cannot be read.
    """
    sizes = {**_SIZES, "BFloat16": 2} if exact_dtypes else _SIZES
    documents = (
        os.path.join(folder, name)
        for name in (file_names.DUMP, file_names.STACK, file_names.CONSTRUCT)
    )
    total = sum(os.path.getsize(path) for path in documents if os.path.exists(path))
    counted = set()
    for place, record in open(folder).dump().tensors():
        name = str(record.get("dtype"))
        bits = int("".join(filter(str.isdigit, name)) or 8)
        arrays = (count_of(record) or 0) * sizes.get(name, bits // 8)
        total += 0 if "data_name" in record else _KEY + len(place)
        content = content_key(record), str(record.get("shape"))
        if (
            not link_equal
            or content[0] is None
            or content not in counted
            or not _tells_content(record)
        ):
            total += arrays + _HEADER
            counted.add(content)
    return total


def _tells_content(record: Record) -> bool:
    """Return whether tensors whose records are equal to this one are equal in all likelihood."""
    numbers = {
        str(record.get(key)).lower() for key in ("Mean", "Norm")
    }  # a document may hold anything
    is_real = not str(record.get("dtype")).startswith(
        "Complex"
    )  # those numbers are of the magnitudes
    return bool(record.get("md5")) or (is_real and numbers.isdisjoint(("none", "nan")))

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe.compare``: all steps and ranks of two runs, and where their differences begin."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Union

from probe.door import function_of
from probe.errors import UsageError
from probe.findings.sentence import clauses, say
from probe.findings.system import reason_of
from probe.reading.compare.answer.summary import (
    ComparisonResult,
    one_line,
    summary_text,
)
from probe.reading.compare.answer.unit import compare_unit, noise_unit, part_path
from probe.reading.compare.distances.rule import ToleranceRule
from probe.reading.compare.judging.judged_pairs import JudgedPairs, Options
from probe.reading.compare.layouts.groups import layout_pairs
from probe.reading.compare.origins.across_steps import link_steps
from probe.reading.compare.origins.unit_summary import UnitSummary
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.query import folders
from probe.reading.dumps.run import Run, known, open as open_run
from probe.reading.dumps.work import HERE, Workers, run_units

#: one side of a comparison: a path, a run or one dump
Side = Union[str, "os.PathLike[str]", Run, Dump]


class Request(NamedTuple):
    """How two runs are compared."""

    options: Options = Options()  # the settings, which every unit of the work gets
    noise: Side | None = None  # a second golden run; None for none
    step: str = ""  # which steps, as "0,4-6"
    rank: str = ""  # which ranks, likewise
    workers: Workers = HERE  # the processes that work
    rows: Mapping[
        str, str | os.PathLike[str]
    ] = {}  # form -> the file that gets a row for each tensor


class Comparison(ComparisonResult):
    """The result of a comparison, with its text and its rows.

    Attributes:
        units: the summaries of every step and rank.
        origins: the places where differences begin, in the order of execution.
        later: places that follow from an origin by the dataflow, but are suspicious by themselves.

    Example::

        comparison = probe.compare("golden", "mine")
        assert comparison.ok
    """

    def __init__(
        self,
        paths: tuple[str, str],
        units: list[UnitSummary],
        alone: tuple[list[Any], list[Any]],
        pairs: list[tuple[DumpFolder, DumpFolder]],
        options: Options,
    ) -> None:
        super().__init__(paths, units, alone)
        self._pairs = pairs
        self._options = options

    @property
    def ok(self) -> bool:
        """Whether all was compared, and nothing differs beyond tolerance. Else a test of pytest prints the summary."""
        is_ok = self.status == 0
        if not is_ok and "PYTEST_CURRENT_TEST" in os.environ:
            print(
                self
            )  # pytest shortens the values of a failed assertion, and shows all that was printed
        return is_ok

    def table(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each tensor of each pair, read again while it is iterated.

        Example::

            for row in comparison.table():
                if row["verdict"] == "differs":
                    print(row["call_b"], row["place"], row["rel_l2"])
        """
        from probe.reading.compare.answer.export import COLUMNS, unit_rows

        for pair in self._pairs:
            comparing = JudgedPairs(Dump(pair[0]), Dump(pair[1]), self._options._replace(rows=()))
            for row in unit_rows(comparing):
                yield dict(zip(COLUMNS, row))

    def __str__(self) -> str:
        return summary_text(self)

    def __repr__(self) -> str:
        return f"<Comparison: {one_line(self)}>"

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(summary_text(self))}</pre>"


def to_xlsx(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Write sheets: the summary, the origins, and every tensor. Raise UsageError when XlsxWriter is not installed."""
    from probe.reading.compare.answer.export import COLUMNS
    from probe.reading.dumps.tables import write_xlsx

    origins = [origin.to_dict() for origin in (*comparison.origins, *comparison.later)]
    keys = ("kind", "step", "rank", "name", "place", "cell", "sentence", "file", "line", "source")
    only = itertools.zip_longest(comparison.only_a, comparison.only_b, fillvalue="")
    write_xlsx(
        path,
        {
            "summary": (("summary",), [(line,) for line in str(comparison).split("\n")]),
            "origins": (keys, [tuple(origin[key] for key in keys) for origin in origins]),
            "tensors": (COLUMNS, (tuple(row.values()) for row in comparison.table())),
            "only": (("only in A", "only in B"), only),
        },
    )


def compare(
    a: Side,
    b: Side,
    rules: Sequence[tuple[str, str]] = (),
    mapping: Mapping[str, str] | None = None,
    noise: Side | None = None,
    step: str = "",
    rank: str = "",
    tolerance: float = 1.0,
    arrays: str = "all",
    jobs: int = 1,
    rows: Mapping[str, str | os.PathLike[str]] | None = None,
    scheduler: str = "",
    layout_a: str = "",
    layout_b: str = "",
    distance: str = "",
) -> Comparison:
    """Compare two runs, or parts of them, and name where their differences begin.

    Args:
        a: A, the golden one: a path, a run or a dump.
        b: B, yours.
        rules: (regular expression, condition) pairs, as ("softmax", "rel_l2 <= 0.02 or max_abs <= 1e-3").
        mapping: parts of names in A -> the same parts in B.
        noise: a second golden run: three times its difference from A is allowed. Of ``probe run --perturb``: the net's.
        step: which steps, as "0,4-6".
        rank: which ranks, likewise.
        tolerance: by how much the tolerances of the dtypes are multiplied.
        arrays: "all", "differs" (only where statistics differ) or "none": which arrays are read.
        jobs: how many processes work; more than 1 only from a script with ``if __name__ == "__main__"``.
        rows: {"csv": path, "jsonl": path, "msprobe": path}: files that get a row for each tensor.
        scheduler: the address of a Dask scheduler, whose workers do it instead of ``jobs`` processes.
        layout_a: the parallel layout of A, as "tp=8,pp=2" (default: its header's).
        layout_b: that of B. The ranks of unequal layouts are put together to the whole model.
        distance: your own distance, "module:function": two arrays of one shape -> a number. A rule may name it.

    Raises:
        UsageError: when there is no dump, nothing can be compared, a rule fits no tensor, or the cluster cannot do it.

    Example::

        comparison = probe.compare("golden", "mine")
        print(comparison)
        assert comparison.ok
    """
    options = Options(
        dict(mapping or {}), tuple(rules), {}, tolerance, arrays, (), (layout_a, layout_b), distance
    )
    comparison = compare_runs(
        a, b, Request(options, noise, step, rank, Workers(jobs, scheduler), rows or {})
    )
    check_rules(rules, comparison.units)
    return comparison


def compare_runs(a: Side, b: Side, request: Request) -> Comparison:
    """Compare as ``compare`` does; a rule may fit no tensor here. Raise UsageError when nothing can be compared."""
    run_a = _run(a)
    run_b = _run(b)
    options = request.options
    noise = request.noise
    for rule in [ToleranceRule(*rule) for rule in options.rules]:  # raises, if one cannot be read
        if rule.is_own and not options.distance:
            raise UsageError(say("error.rule_distance", rule=rule.text[1]))
    if options.distance:
        function_of(options.distance)
    if options.arrays not in ("all", "differs", "none"):
        raise UsageError(say("error.arrays", text=options.arrays))
    layouts = layout_pairs(
        run_a,
        run_b,
        options.layouts,
        request.step,
        request.rank,
        options.mapping,
        noise is not None,
    )
    pairs, alone = layouts or pair_folders(run_a, run_b, request.step, request.rank)
    if noise is not None:
        options = options._replace(noise=_noise(run_a, _run(noise), request))
    units = _run_units(pairs, options, request)
    link_steps(units, pairs)
    return Comparison((run_a.path, run_b.path), units, alone, pairs, options)


def check_rules(rules: Sequence[tuple[str, str]], units: Sequence[UnitSummary]) -> None:
    """Raise UsageError when a rule fits no tensor: it has a typo."""
    used = [
        sum(counts)
        for counts in zip(*(unit.counts.rules_used for unit in units if unit.counts.rules_used))
    ]
    unused = [rules[place][0] for place, count in enumerate(used) if not count]
    if unused:
        raise UsageError(say("error.rule_unused", names=[f"'{name}'" for name in unused]))


def _run_units(
    pairs: list[tuple[DumpFolder, DumpFolder]], options: Options, request: Request
) -> list[UnitSummary]:
    from probe.reading.compare.answer.export import join_parts

    rows = request.rows
    workers = request.workers
    with contextlib.ExitStack() as stack:
        bases = {
            form: os.path.join(_scratch(stack, path, workers), form) for form, path in rows.items()
        }
        units = []
        for number, (left, right) in enumerate(pairs):
            parts = tuple((part_path(base, number), form) for form, base in bases.items())
            key = left.step, left.rank
            noise = {key: options.noise[key]} if key in options.noise else {}
            units.append((left, right, options._replace(rows=parts, noise=noise)))
        found = list(run_units(compare_unit, units, workers))
        for form, path in rows.items():
            files = [part_path(bases[form], number) for number in range(len(pairs))]
            for file, unit in zip(files, found):
                if not unit.error and not os.path.exists(
                    file
                ):  # a worker wrote into a folder that only it sees
                    raise UsageError(
                        say(
                            "error.rows_lost",
                            step=unit.step,
                            rank=unit.rank,
                            folder=os.path.dirname(file),
                        )
                    )
            join_parts(files, form, path)
    return found


def _scratch(stack: contextlib.ExitStack, path: str | os.PathLike[str], workers: Workers) -> str:
    """Return a folder for the rows of each unit; the workers of a cluster see only that of the table itself."""
    beside = os.path.dirname(os.path.abspath(path)) if workers.scheduler else None
    try:
        return stack.enter_context(tempfile.TemporaryDirectory(prefix=".probe-", dir=beside))
    except OSError as error:
        raise UsageError(
            say("error.unwritable", path=os.fspath(path), reason=reason_of(error))
        ) from error


def _run(side: Side) -> Run:
    if isinstance(side, Run):
        return side
    return Run(side.path, [side.folder]) if isinstance(side, Dump) else open_run(side)


def _noise(golden: Run, again: Run, request: Request) -> dict[Any, dict[str, float]]:
    pairs, _ = pair_folders(golden, again, "", "")
    options = Options(arrays="none" if request.options.arrays == "none" else "all")
    units = [(*pair, options) for pair in pairs]
    found = run_units(noise_unit, units, request.workers, say("progress.noise"))
    return {(folder.step, folder.rank): apart for (folder, _), apart in zip(pairs, found)}


def pair_folders(
    run_a: Run, run_b: Run, step: str, rank: str
) -> tuple[list[tuple[DumpFolder, DumpFolder]], tuple[list[Any], list[Any]]]:
    """Return the pairs of folders, and the dumps of only one run; raise UsageError when nothing can be paired."""
    left = folders(run_a, step, rank)
    right = folders(run_b, step, rank)
    several = [
        word
        for word in ("tree", "step", "rank")
        if any(
            len({getattr(folder, word) for folder in run.folders}) != 1 for run in (run_a, run_b)
        )
    ]

    def key(folder: DumpFolder) -> tuple[Any, ...]:
        return tuple(getattr(folder, word) for word in several)

    partners = {key(folder): folder for folder in right}
    pairs = [(folder, partners.pop(key(folder))) for folder in left if key(folder) in partners]
    chosen = {pair[0].path for pair in pairs}
    if not pairs:
        sides = [
            say("error.side", side=side, known=known(run))
            for side, run in (("A", run_a), ("B", run_b))
        ]
        raise UsageError(say("error.nothing_compared", sides=clauses(*sides)))
    alone_a = [folder.label for folder in left if folder.path not in chosen]
    alone_b = [folder.label for folder in partners.values()]
    return pairs, (alone_a, alone_b)

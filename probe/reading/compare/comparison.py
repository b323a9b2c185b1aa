# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""``probe.compare``: all steps and ranks of two runs, and where their differences begin."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

from probe.errors import UsageError
from probe.reading.compare.linking import first_origins
from probe.reading.compare.origins import Origin
from probe.reading.compare.summary import one_line, summary_text
from probe.reading.compare.tolerance import Rule
from probe.reading.compare.unit import Comparing, Options, UnitSummary, compare_unit, part_path
from probe.reading.dump import Dump
from probe.reading.query import folders
from probe.reading.run import Run
from probe.reading.run import open as open_run
from probe.reading.source import DumpFolder
from probe.reading.work import run_units

#: what is compared: a path, a run or one dump
Side = Union[str, "os.PathLike[str]", Run, Dump]
_LEAST_PAIRED = 0.5


class Comparison:
    """What came of a comparison.

    Args:
        paths: A and B as they were given.
        units: the summaries of every step and rank.
        alone: what is only in A, and only in B.
        pairs: the folders that were compared, for ``table``.
        options: what was asked for.

    Attributes:
        units: the summaries of every step and rank.
        origins: where differences begin, the first in the order of execution first.
        later: what follows from an origin by the dataflow, but is suspicious by itself.

    Example::

        comparison = probe.compare("golden", "mine")
        assert comparison.ok, comparison
    """

    def __init__(
        self,
        paths: tuple[str, str],
        units: list[UnitSummary],
        alone: tuple[list[str], list[str]],
        pairs: list[tuple[DumpFolder, DumpFolder]],
        options: Options,
    ) -> None:
        self.paths, self.units, self.alone = paths, units, alone
        self._pairs, self._options = pairs, options
        self.origins, self.later = first_origins(units)

    @property
    def errors(self) -> list[str]:
        """The dumps that could not be read, and why."""
        return [unit.error for unit in self.units if unit.error]

    @property
    def first(self) -> Origin | None:
        """The first place where a difference begins; None where there is none."""
        return self.origins[0] if self.origins else None

    @property
    def verdicts(self) -> dict[str, int]:
        """How many tensors have each verdict."""
        return dict(sum((Counter(unit.verdicts) for unit in self.units), Counter()))

    @property
    def pairs(self) -> dict[str, int]:
        """How many calls were paired, by how they were found."""
        found = dict(sum((Counter(unit.pairs) for unit in self.units), Counter()))
        return {how: count for how, count in found.items() if how}

    @property
    def only_a(self) -> list[str]:
        """Calls that are only in A; of many the first of each step and rank."""
        return [name for unit in self.units for name in unit.only_a]

    @property
    def only_b(self) -> list[str]:
        """Calls that are only in B."""
        return [name for unit in self.units for name in unit.only_b]

    @property
    def is_comparable(self) -> bool:
        """Whether at least half of the calls have a partner, and every dump could be read."""
        paired = sum(unit.paired for unit in self.units)
        least = min(
            (paired + sum(unit.only_counts[0] for unit in self.units)),
            (paired + sum(unit.only_counts[1] for unit in self.units)),
        )
        return paired > 0 and paired >= _LEAST_PAIRED * least and not self.errors

    @property
    def ok(self) -> bool:
        """Whether nothing differs beyond tolerance."""
        return self.is_comparable and not self.origins and not any(unit.differs for unit in self.units)

    @property
    def status(self) -> int:
        """The exit status: 0 no difference beyond tolerance, 1 differences, 2 what cannot be compared."""
        return 0 if self.ok else 1 if self.is_comparable else 2

    def table(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each tensor of each pair, read again while it is iterated.

        Example::

            for row in comparison.table():
                if row["verdict"] == "differs":
                    print(row["call_b"], row["place"], row["rel_l2"])
        """
        from probe.reading.compare.export import COLUMNS, unit_rows

        for pair in self._pairs:
            comparing = Comparing(Dump(pair[0]), Dump(pair[1]), self._options._replace(rows=()))
            for row in unit_rows(comparing):
                yield dict(zip(COLUMNS, row))

    def to_dict(self) -> dict[str, Any]:
        """Return the summary for JSON."""
        return {
            "a": self.paths[0],
            "b": self.paths[1],
            "ok": self.ok,
            "status": self.status,
            "origins": [origin.to_dict() for origin in self.origins],
            "later": [origin.to_dict() for origin in self.later],
            "pairs": self.pairs,
            "verdicts": self.verdicts,
            "only_a": self.only_a,
            "only_b": self.only_b,
            "not_compared": {"a": self.alone[0], "b": self.alone[1]},
            "errors": self.errors,
            "header": [line for unit in self.units[:1] for line in unit.header],
            "units": [
                {key: getattr(unit, key) for key in ("step", "rank", "verdicts", "pairs", "cells")}
                for unit in self.units
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        return summary_text(self)

    def __repr__(self) -> str:
        return f"<Comparison: {one_line(self)}>"

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(summary_text(self))}</pre>"


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
) -> Comparison:
    """Compare two runs, or parts of them, and name where their differences begin.

    Args:
        a: A, the golden one: a path, a run or a dump.
        b: B, yours.
        rules: (regular expression, condition) pairs, as ("softmax", "rel_l2 <= 0.02 or max_abs <= 1e-3").
        mapping: parts of names in A -> what they are called in B.
        noise: a second golden run. A tensor may differ by three times its difference between A and this one.
        step: which steps, as "0,4-6".
        rank: which ranks, likewise.
        tolerance: by how much the tolerances of the dtypes are multiplied.
        arrays: "all", "differs" (only where statistics differ) or "none": which arrays are read.
        jobs: how many processes work; more than 1 only from a script with ``if __name__ == "__main__"``.
        rows: {"csv": path, "jsonl": path, "msprobe": path}: files that get a row for each tensor.

    Raises:
        UsageError: when there is no dump, nothing can be compared, or a rule fits no tensor.

    Example::

        comparison = probe.compare("golden", "mine")
        print(comparison)
        assert comparison.ok
    """
    run_a, run_b = _run(a), _run(b)
    for rule in rules:
        Rule(*rule)
    if arrays not in ("all", "differs", "none"):
        raise UsageError(f"--arrays: {arrays!r} is not allowed. Allowed: all, differs, none.")
    pairs, alone = pair_folders(run_a, run_b, step, rank)
    options = Options(dict(mapping or {}), tuple(rules), _noise(run_a, noise, mapping), tolerance, arrays)
    units = _run_units(pairs, options, jobs, rows or {})
    comparison = Comparison((run_a.path, run_b.path), units, alone, pairs, options)
    _check_rules(rules, units)
    return comparison


def _check_rules(rules: Sequence[tuple[str, str]], units: Sequence[UnitSummary]) -> None:
    """Raise UsageError where a rule fits no tensor: it has a typo."""
    used = [sum(counts) for counts in zip(*(unit.rules_used for unit in units if unit.rules_used))]
    unused = [rules[place][0] for place, count in enumerate(used) if not count]
    if unused:
        raise UsageError(f"--rule: no tensor has a name in which {', '.join(map(repr, unused))} is found")


def _run_units(
    pairs: list[tuple[DumpFolder, DumpFolder]], options: Options, jobs: int, rows: Mapping[str, Any]
) -> list[UnitSummary]:
    from probe.reading.compare.export import join_parts

    with tempfile.TemporaryDirectory() as scratch:
        units = []
        for number, pair in enumerate(pairs):
            parts = tuple((part_path(os.path.join(scratch, form), number), form) for form in rows)
            units.append((*pair, options._replace(rows=parts)))
        found = list(run_units(compare_unit, units, jobs))
        for form, path in rows.items():
            join_parts([part_path(os.path.join(scratch, form), number) for number in range(len(pairs))], form, path)
    return found


def _run(side: Side) -> Run:
    if isinstance(side, Run):
        return side
    return Run(side.path, [side.folder]) if isinstance(side, Dump) else open_run(side)


def _noise(run_a: Run, noise: Side | None, mapping: Mapping[str, str] | None) -> dict[Any, dict[str, float]]:
    """Return how far each tensor is apart in two golden runs."""
    if noise is None:
        return {}
    found: dict[Any, dict[str, float]] = {}
    for folder_a, folder_b in pair_folders(run_a, _run(noise), "", "")[0]:
        comparing = Comparing(Dump(folder_a), Dump(folder_b), Options())
        names = comparing.alignment.flows[0].names
        found[folder_a.step, folder_a.rank] = {
            f"{names[pair.a]}.{slot.place}": slot.distance.rel_l2
            for pair, slot in comparing.rows()
            if slot is not None and slot.distance.rel_l2
        }
    return found


def pair_folders(
    run_a: Run, run_b: Run, step: str, rank: str
) -> tuple[list[tuple[DumpFolder, DumpFolder]], tuple[list[str], list[str]]]:
    """Return the folders of one step and rank each, and what only one run has.

    Raises:
        UsageError: when nothing can be paired.
    """
    left, right = folders(run_a, step, rank), folders(run_b, step, rank)
    one_step = all(len({folder.step for folder in run.folders}) == 1 for run in (run_a, run_b))
    one_rank = all(len({folder.rank for folder in run.folders}) == 1 for run in (run_a, run_b))
    one_tree = all(len({folder.tree for folder in run.folders}) == 1 for run in (run_a, run_b))

    def key(folder: DumpFolder) -> tuple[Any, ...]:
        return None if one_tree else folder.tree, None if one_step else folder.step, None if one_rank else folder.rank

    partners = {key(folder): folder for folder in right}
    pairs = [(folder, partners.pop(key(folder))) for folder in left if key(folder) in partners]
    chosen = {pair[0].path for pair in pairs}
    if not pairs:
        raise UsageError(
            f"nothing can be compared: A has steps {run_a.steps} and ranks {run_a.ranks}, "
            f"B has steps {run_b.steps} and ranks {run_b.ranks}"
        )
    alone = [folder.label for folder in left if folder.path not in chosen]
    return pairs, (alone, [folder.label for folder in partners.values()])

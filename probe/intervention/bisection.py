# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own punctuation
"""``probe bisect``: the smallest set of Cells or calls whose change makes a condition hold."""

from __future__ import annotations

import argparse
import functools
import glob
import math
import operator
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, NOTHING, Sentence, say
from probe.findings.system import foreign
from probe.findings.wording import Wording
from probe.intervention.change import KINDS, Change
from probe.intervention.runs import Run, Runs
from probe.options import OneLineParser
from probe.reading.commands.arguments import add_options
from probe.reading.commands.command import Option
from probe.reading.dumps.text import columns, terminal_width
from probe.series.series import find_series

_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
#: the part of a golden loss by which another one may differ
CLOSENESS = 0.01


class Until:
    """The condition that a run fulfils or not: "finite", "loss < 3 at 20", "close to GOLDEN [within 0.01]".

    Raise UsageError for another text, and for a golden run without losses.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._golden = dict[int, float]()
        self._order = ""
        self._limit = CLOSENESS
        self._step = -1
        words = text.split()
        try:
            if words[:2] == ["close", "to"]:
                path, _, part = text.strip()[len("close to") :].strip().partition(" within ")
                self._golden = golden_losses(path)
                self._limit = float(part or CLOSENESS)
            elif words != ["finite"]:
                _, self._order, limit, _, step = words
                self._limit = float(limit)
                self._step = int(step)
                if (words[0], words[3], self._order in _ORDERS) != ("loss", "at", True):
                    raise ValueError
        except ValueError:
            raise UsageError(say("bisect.until", text=text)) from None

    def __call__(self, run: Run, has_ended: bool) -> bool | None:
        """Return whether a run fulfils it; None while that is open. A run that fails does not."""
        losses = run.losses
        if run.status:
            return False
        if self._order:
            if self._step not in losses and has_ended:
                raise UsageError(say("bisect.no_step", step=self._step, last=max(losses)))
            return (
                bool(_ORDERS[self._order](losses[self._step], self._limit))
                if self._step in losses
                else None
            )
        if self._golden:
            both = self._golden.keys() & losses.keys()
            if has_ended and not both:
                raise UsageError(say("bisect.other_steps"))
            has_ended = has_ended or self._golden.keys() <= losses.keys()
            is_right = all(is_close(losses[step], self._golden[step], self._limit) for step in both)
        else:
            is_right = all(map(math.isfinite, losses.values()))
        return (has_ended or None) if is_right else False


def is_close(loss: float, golden: float, part: float) -> bool:
    """Return whether a loss differs from the golden one by at most a part of it."""
    return abs(loss - golden) <= part * abs(golden)


def agreement(losses: Mapping[int, float], golden: Mapping[int, float], part: float) -> int | None:
    """Return the step from which on all losses are close to the golden ones; None where the last is not.

    >>> agreement({0: 2.0, 1: 1.0, 2: 0.5}, {0: 3.0, 1: 1.001, 2: 0.5}, 0.01)
    1
    """
    found = None
    for step in sorted(losses.keys() & golden.keys(), reverse=True):
        if not is_close(losses[step], golden[step], part):
            break
        found = step
    return found


def golden_losses(path: str) -> dict[int, float]:
    """Return step -> loss of a run of the monitor, of the unchanged run in a folder of ``probe try``, or of a dump.

    Raise UsageError when there is none.
    """
    from probe.reading.dumps.run import open
    from probe.reading.one_run.health.losses import facts
    from probe.reading.one_run.health.step import Step

    path = next(iter(glob.glob(os.path.join(glob.escape(path), "unchanged-*"))), path)
    run = open(path)
    if find_series(path):
        return {int(step): float(loss) for step, loss in zip(*run.series("loss"))}
    found = [(dump.step, [*facts(Step(dump, None)).losses.values()]) for dump in run]
    losses = {step: values[0] for step, values in reversed(found) if step is not None and values}
    if not losses:
        raise UsageError(say("bisect.no_loss", path=path))
    return dict(sorted(losses.items()))


def smallest(units: Sequence[str], holds: Callable[[Sequence[str]], bool]) -> list[str] | None:
    """Return the smallest set that makes a condition hold; None where all units together do not.

    One member is found by halving: the shortest beginning of the list that holds ends with a member. The next one is
    sought before it, beside the members so far. A larger set is taken to hold where a smaller one does.

    >>> asked = []
    >>> smallest("abcdefgh", lambda some: asked.append(some) or {"b", "g"} <= set(some)), len(asked)
    (['g', 'b'], 8)
    """
    found: list[str] = []
    left = list(units)
    has_held = False
    holds = functools.cache(lambda some, ask=holds: ask(list(some)))
    while left:
        low = 0
        high = len(left)
        while high - low > 1:
            middle = (low + high) // 2
            if holds((*found, *left[:middle])):
                high = middle
                has_held = True
            else:
                low = middle
        found.append(left[high - 1])
        left = left[: high - 1]
        if holds(tuple(found)):
            return found
        if not has_held:  # the last unit was only supposed to be a member
            if not holds(tuple(units)):
                return None
            has_held = True
    return None


def add_bisect(
    parser: OneLineParser,
) -> Callable[[argparse.Namespace, Runs], tuple[dict[str, Any], int, str]]:
    """Add the options of ``probe bisect``; return what runs it."""
    condition = (
        Option(
            "--until",
            is_required=True,
            metavar="CONDITION",
            help=Wording(
                "finite, 'loss < 3 at 20', or 'close to GOLDEN'",
                "finite、`loss < 3 at 20` 或 `close to GOLDEN`",
            ),
        ),
        Option(
            "--by",
            choices=("cell", "layer", "call"),
            default="cell",
            help=Wording("the units of the division", "划分的单位"),
        ),
    )
    as_of_try = Wording(
        "as of probe try, for all of a set", "与 `probe try` 相同，用于集合的全部成员"
    )
    changes = [
        Option(f"--{kind}", action="append_const", dest="kinds", const=kind, help=as_of_try)
        for kind in ("float32", "cpu", "formula")
    ]
    add_options(parser, [*condition, *changes], parser.language)

    def run(given: argparse.Namespace, runs: Runs) -> tuple[dict[str, Any], int, str]:
        if len(given.kinds or ()) != 1:
            raise UsageError(say("bisect.one_change"))
        return Bisection(runs, Until(given.until), given.kinds[0], given.by).answer(given.lang)

    return run


class Bisection:
    """Looks for the smallest set of units."""

    def __init__(self, runs: Runs, until: Until, kind: str, by: str) -> None:
        self._runs = runs
        self._until = until
        self._kind = kind
        self._by = by
        self._units: dict[str, tuple[str, ...]] = {}
        self._language = ENGLISH  # of the lines about each run
        self._rows: list[tuple[Sentence, Sentence, Sentence]] = []

    def answer(self, language: str) -> tuple[dict[str, Any], int, str]:
        """Return the answer as JSON, the exit status, and the text."""
        self._language = language
        unchanged = self._runs.run(decide=self._until)
        self._note(unchanged, 0)
        if unchanged.answer:
            return self._said([], say("bisect.holds", until=self._until.text), language)
        self._units = self._runs.calls.units(self._by, self._kind)
        if not self._units:
            raise UsageError(say("bisect.no_half"))
        found = smallest(list(self._units), self._holds)
        if found is None:
            return self._said(
                [], say("bisect.none", until=self._until.text, count=len(self._units)), language
            )
        facts = {
            "names": found,
            "until": self._until.text,
            "count": len(self._units),
            "runs": len(self._rows),
        }
        return self._said(found, say("bisect.found", kind=self._kind, **facts), language)

    def _holds(self, units: Sequence[str]) -> bool:
        names = tuple(sorted({member for unit in units for member in self._units[unit]}))
        shown = list(units) if len(units) < 7 else [say("bisect.units", count=len(units))]
        said = say(KINDS[self._kind], names=shown)
        run = self._runs.run(Change(**{self._kind: names}, said=str(said)), self._until)  # type: ignore[arg-type]  # of names
        self._note(run, len(units))
        return bool(run.answer)

    def _note(self, run: Run, count: int) -> None:
        last = foreign(run.why[:60])
        if run.losses:
            step = max(run.losses)
            last = say("bisect.loss_at", loss=run.losses[step], step=step)
        kept = say("bisect.kept") if run.was_kept else NOTHING
        answer = say("bisect.yes") if run.answer else say("bisect.no")
        all_units = str(len(self._units) or "?")
        self._rows.append((say("bisect.of", count=count, all=all_units, kept=kept), last, answer))
        facts = {"count": count, "last": last, "answer": answer, "kept": kept}
        said = say("bisect.run", number=len(self._rows), **facts)
        print(said.text(self._language), file=sys.stderr)

    def _said(self, found: list[str], said: Any, language: str) -> tuple[dict[str, Any], int, str]:
        head = tuple(
            say(key).text(language) for key in ("bisect.changed", "bisect.loss", "bisect.fulfilled")
        )
        shown = [[cell.text(language) for cell in row] for row in self._rows]
        text = "\n".join(
            [
                columns([head, *shown], terminal_width()),
                said.text(language),
            ]
        )
        rows = [dict(zip(("changed", "loss", "fulfilled"), map(str, row))) for row in self._rows]
        return (
            {"found": found, "said": str(said), **said.to_dict(), "runs": rows},
            int(not found),
            text,
        )

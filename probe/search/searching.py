# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The search: does one experiment after the other, tells each before and after, and keeps its result."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.dumps.text import safe
from probe.search.answer import sentence_dict
from probe.search.experiment import Experiment
from probe.search.lab import Lab
from probe.search.ledger import Ledger, Result
from probe.search.one_search import only_search
from probe.search.table import EXPERIMENTS, FIRST
from probe.search.watching import CUT, NO_TIME, WATCH, watched
from probe.search.wishes import Wishes

#: a guess at the seconds before the first step, until a run has told them
_START = 10.0


def _forget_short_watch(ledger: Ledger, minutes: float) -> None:
    """Forget all results where an earlier start ended the first run too early, and it may take longer now."""
    first = ledger.results.get(WATCH)
    is_cut = first is not None and first.outcome == CUT
    if first is not None and is_cut and 60 * minutes / 2 > first.seconds + 1:
        ledger.results.clear()


class Search:
    """A search for one cause.

    Args:
        wishes: the wishes of the user.
    """

    def __init__(self, wishes: Wishes) -> None:
        self.wishes = wishes
        ledger = Ledger(os.path.join(wishes.folder, wishes.key))
        _forget_short_watch(ledger, wishes.minutes)
        self.lab = Lab(wishes, ledger, time.monotonic() + 60 * wishes.minutes)
        self.left_out: list[str] = []  # the experiments for which the budget had no time

    def run(self) -> None:
        """Do the experiments, from the first one on or from the one that was interrupted."""
        with only_search(self.lab.ledger.folder) as held:
            self.lab.held = held
            self.lab.ledger.read()  # another search may have gone on meanwhile
            _forget_short_watch(self.lab.ledger, self.wishes.minutes)
            self._experiments()

    def _experiments(self) -> None:
        """Do one experiment after the other."""
        name = FIRST
        number = 0
        while name:
            number += 1
            experiment = EXPERIMENTS[name]
            known = self.lab.ledger.results.get(name)
            if known is None and self._is_too_dear(experiment):
                self.left_out.append(name)
                return
            self._ask(number, experiment)
            result = known or experiment.do(self.lab)
            is_cut = known is None and (self.lab.left <= 0 or result.outcome == NO_TIME)
            if known is None and not is_cut:
                self.lab.ledger.add(result)
            self._tell(number, experiment, result, known is not None)
            if is_cut:
                self.left_out.append(name)
                return
            name = self._next(experiment, result)

    def plan(self) -> Iterator[Sentence]:
        """Yield the lines of the plan: each experiment with its price, and each outcome with what comes next."""
        for number, experiment in enumerate(EXPERIMENTS.values(), 1):
            is_done = experiment.name in self.lab.ledger.results
            done = say("find.done") if is_done else NOTHING
            facts = {"price": self._price(experiment), "asks": say(experiment.asks), "done": done}
            yield say("find.plan_row", number=number, name=experiment.name, **facts)
            for name, outcome in experiment.outcomes.items():
                then: list[str | Sentence] = [*outcome.then] or [say("find.plan_end")]
                yield say("find.plan_outcome", name=name, means=say(outcome.means), then=then)

    def _next(self, experiment: Experiment, result: Result) -> str:
        """Return the next experiment that can be done; "" for none."""
        then = experiment.outcomes[result.outcome].then
        return next((name for name in then if EXPERIMENTS[name].can(self.lab)), "")

    def _seconds(self, experiment: Experiment) -> float | None:
        """Return how long an experiment takes; None before a run has told the seconds of a step."""
        count = watched(self.lab, "count")
        if count is None:
            return None
        start = watched(self.lab, "start_seconds", _START)
        step_seconds = watched(self.lab, "step_seconds", 0.0)
        return experiment.price.seconds(start, step_seconds, experiment.steps(self.lab), count)

    def _is_too_dear(self, experiment: Experiment) -> bool:
        seconds = self._seconds(experiment)
        return self.lab.left <= 0 or (seconds is not None and seconds > self.lab.left)

    def _price(self, experiment: Experiment) -> Sentence:
        price = experiment.price
        if not price.runs:
            return say("find.price_none")
        key = "find.price" if price.recorded else "find.price_bare"
        if price.is_whole:
            key = "find.price_whole"
        seconds = self._seconds(experiment)
        about = NOTHING if seconds is None else say("find.price_seconds", seconds=seconds)
        facts = {"recorded": price.recorded, "ratio": price.ratio, "seconds": about}
        return say(key, runs=price.runs, **facts)

    def _ask(self, number: int, experiment: Experiment) -> None:
        """Print an experiment before it is done."""
        if self.wishes.as_json:
            return
        facts = {"asks": say(experiment.asks), "price": self._price(experiment)}
        self._print(say("find.asked", number=number, name=experiment.name, **facts))

    def _tell(self, number: int, experiment: Experiment, result: Result, was_kept: bool) -> None:
        """Print what an experiment has taught."""
        if not self.wishes.as_json:
            kept = say("find.kept") if was_kept else NOTHING
            facts = {"learned": result.learned, "seconds": result.seconds, "kept": kept}
            self._print(say("find.learned", **facts))
            return
        row = {
            "experiment": result.name,
            "number": number,
            "asks": sentence_dict(say(experiment.asks)),
            "outcome": result.outcome,
            "means": sentence_dict(say(experiment.outcomes[result.outcome].means)),
            "learned": sentence_dict(result.learned),
            "seconds": round(result.seconds, 3),
            "runs": result.runs,
            "was_kept": was_kept,
            "folder": self.lab.ledger.place(result.name),
        }
        print(json.dumps(row), flush=True)

    def _print(self, said: Sentence) -> None:
        print(safe(said.text(self.wishes.language)), flush=True)

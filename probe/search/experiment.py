# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An experiment as a row of a table: what it asks, what it costs, what each outcome means, and which comes next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from probe.search.lab import Lab
from probe.search.ledger import Result
from probe.search.recordings import wanted_steps


@dataclass(frozen=True)
class Outcome:
    """One outcome of an experiment.

    Attributes:
        means: the sentence that says what it means.
        then: the experiments that may come next; the first that can be done is taken.
    """

    means: str
    then: tuple[str, ...] = ()


@dataclass(frozen=True)
class Price:
    """The price of an experiment.

    Attributes:
        runs: how many runs of a training it makes.
        recorded: how many of their steps are recorded.
        ratio: the time of such a step by that of a bare one, as docs/performance.md has measured it.
        is_whole: whether a run goes up to the end of the program, and not only to the symptom.
    """

    runs: int
    recorded: int = 0
    ratio: float = 1.0
    is_whole: bool = False

    def seconds(self, start: float, step: float, steps: Sequence[int], count: int) -> float:
        """Return the seconds that it takes.

        Args:
            start: the seconds before the first step.
            step: those of a bare step.
            steps: the steps that it looks at.
            count: how many steps the program has.
        """
        last = count if self.is_whole else max(steps, default=0) + 1
        recorded = min(self.recorded, len(steps))
        return self.runs * (start + last * step) + recorded * step * self.ratio


@dataclass(frozen=True)
class Experiment:
    """An experiment.

    Attributes:
        name: its name, and that of its folder.
        asks: the sentence of its question.
        price: its price.
        outcomes: its outcomes by name.
        can: whether it can be done, and would tell something.
        do: does it.
        steps: the steps that it looks at, once a run has told the steps of the program.
    """

    name: str
    asks: str
    price: Price
    can: Callable[[Lab], bool]
    do: Callable[[Lab], Result]
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    steps: Callable[[Lab], Sequence[int]] = wanted_steps

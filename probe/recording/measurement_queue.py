# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""When the values of a step are looked at: at once, or when what runs asynchronously has ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from probe.measure.deferred import DeferredMeasurer, LaterSum
from probe.measure.measurer import Measurer, Save, Trouble
from probe.measure.records import resolve
from probe.measure.tensor_reader import Sum


class MeasurementQueue:
    """Holds the meter of the moment, and the finished entries whose values are not known yet.

    A look at a tensor waits for everything that was begun before. While a communication is on its way that the training
    has not waited for, nobody looks: values are copied, in the order of the program, and measured when it has landed.

    Args:
        meter: how numbers are obtained.
        looks: whether values are wanted at all.
        interrupts: whether the training may have to be stopped at any occasion.
        wait: waits for what runs asynchronously; raises an error of the training that is pending.
        take: takes a finished entry whose values are known.
        trouble: ends an error of the tool.
        lock: is held while entries are passed on.
        judges: ``take`` wants entries only when they are complete.

    Attributes:
        meter: measures now.
        at_once: it measures when it is given a tensor.
        settle: waits, where values are about to be looked at; raises errors of the training.
        put: takes a finished entry.
        theirs: an error of the training that our look at a value met first, or one that it asked for.
    """

    def __init__(
        self,
        meter: Measurer,
        looks: bool,
        interrupts: bool,
        wait: Callable[[], None],
        take: Callable[[Any], None],
        trouble: Trouble,
        lock: AbstractContextManager[Any],
        judges: bool,
    ) -> None:
        self._usual = self.meter = meter
        self._looks, self._judges = looks, judges
        self._wait, self._take, self._trouble = wait, take, trouble
        self.lock = lock
        self._waiting: list[Any] = []
        self._patient: DeferredMeasurer | None = None
        self._flights = 0
        #: one thread at a time completes these, or an entry of one would miss the numbers that another has
        self._collector = threading.RLock()
        self._entries: list[Any] = []
        self._copies: list[Callable[[], None]] = []
        self.theirs: BaseException | None = None
        self.at_once = looks and meter.at_once
        self.settle: Callable[[], None] = wait if self.at_once and not interrupts else self._settle
        self.put: Callable[[Any], None] = take if self.at_once or not looks else self._waiting.append

    def _settle(self) -> None:
        error, self.theirs = self.theirs, None
        if error is not None:
            raise error
        if self.meter.full and not self._flights:
            self.finish()

    # -- communications that nobody has waited for yet ------------------------------------------------------------

    @property
    def is_awaiting(self) -> bool:
        """Whether one is on its way."""
        return self._flights > 0

    def departs(self) -> None:
        """Note that one is on its way; nothing waits until it has landed."""
        if not self._looks:
            return
        with self.lock:
            self._flights += 1
            if self._usual.at_once:
                if self._patient is None:  # from now on, to the end of the step
                    self._patient = DeferredMeasurer(self._usual, blind=True)
                    self.settle, self.put = self._settle_patiently, self._put_patiently
                self.meter, self.at_once = self._patient, False

    def lands(self, well: bool = True) -> None:
        """Note that the training has waited for one. Raises errors of the training.

        Args:
            well: it was there then; otherwise waiting has failed, and what else was begun may never end.
        """
        with self.lock:
            self._flights -= self._flights > 0
            if self._flights or self._patient is None:
                return
            self.meter, self.at_once = self._usual, True
        if well:
            self.finish()

    def _settle_patiently(self) -> None:
        error, self.theirs = self.theirs, None
        if error is not None:
            raise error
        if not self._flights:
            self.finish()

    def _put_patiently(self, entry: Any) -> None:
        """Pass an entry on at once, with null for what is not known; the numbers follow."""
        assert self._patient is not None
        if not (self._flights or self._entries or self._copies or self._patient.waits):
            self._take(entry)
            return
        self._waiting.append(entry)
        if not self._judges:
            self._take(entry)

    # -- sums of gradients, to which terms may come at either pace -------------------------------------------------

    def sum(self) -> Any:
        """Return a new sum of gradients, with ``add`` and ``take_from``."""
        return PacedSum(self, self._usual.sum()) if self._usual.at_once else self._usual.sum()

    def later_sum(self) -> LaterSum:
        """Return one of copies, for what arrives while a communication is on its way."""
        assert self._patient is not None
        return self._patient.sum()

    def total(self, total: Any, name: str, save: Save | None) -> Any:
        """Return the record of such a sum, or None where nothing is left of it."""
        if isinstance(total, PacedSum) and (self.at_once or total.is_known):
            made = total.made()
            return None if made is None else self._usual.total(made, name, save)
        return self.meter.total(total, name, save)

    # -- the end ---------------------------------------------------------------------------------------------------

    def finish(self, ends: bool = False) -> None:
        """Wait for what runs asynchronously and pass on the entries of it. Raises errors of the training.

        Args:
            ends: the step is over: wait too where the training has not waited for a communication.
        """
        error, self.theirs = self.theirs, None
        if ends and self._flights:
            with self.lock:
                self._flights = 0
                if self._patient is not None:
                    self.meter, self.at_once = self._usual, True
        if self._looks and not self._flights:
            if self._patient is None:
                self._wait()
                with self.lock:
                    self._collect()
            else:
                self._collect_patiently(self._patient)
        if error is not None:
            raise error

    def give_up(self) -> None:
        """Pass on the entries that wait, with null for what is not known: the process ends."""
        with self.lock:
            waiting = self._entries + self._waiting
            self._entries = []
            self._waiting.clear()
            for entry in waiting:
                self._take(entry)

    def _collect(self) -> None:
        waiting = list(self._waiting)
        self._waiting.clear()
        self.meter.collect(self._trouble)
        for entry in waiting:
            self._take(entry)

    def _collect_patiently(self, patient: DeferredMeasurer) -> None:
        """Measure the copies that there are now and complete their entries; other threads record on meanwhile."""
        with self._collector:
            with self.lock:
                self._entries += self._waiting
                self._waiting.clear()
                self._copies += patient.take()
            self._wait()
            with self.lock:
                entries, copies = self._entries, self._copies
                self._entries, self._copies = [], []
                try:
                    patient.measure(copies, self._trouble)
                    for name, parts, *more in entries:
                        self._take((name, resolve(parts), *(more if self._judges else (-1, []))))
                except Exception as error:  # of our own: what is raised here would be taken for the training's
                    self._trouble("completing entries", error)


class PacedSum:
    """A sum of which some terms were read at once, and some copied while nobody could look; see ``Sum``."""

    __slots__ = ("_later", "_now", "_pace")

    def __init__(self, pace: MeasurementQueue, now: Sum) -> None:
        self._pace, self._now = pace, now
        self._later: LaterSum | None = None

    def __bool__(self) -> bool:
        """Return whether anything was added."""
        return bool(self._now) or not self.is_known

    @property
    def is_known(self) -> bool:
        """Whether every term was read."""
        return self._later is None

    def add(self, tensor: Any) -> None:
        """Add one contribution; its memory may be reused afterwards."""
        if self._pace.at_once:
            self._now.add(tensor)
        else:
            self._deferred().add(tensor)

    def take_from(self, total: Any) -> bool:
        """Become what ``total`` is without this sum; return whether anything is left, as far as that is known."""
        if not self._pace.at_once:
            return self._deferred().take_from(total)
        made = self.made()
        return (self._now if made is None else made).take_from(total)

    def made(self, new: Any = None) -> Sum | None:
        """Return the sum, or None where nothing is left; what was copied must be complete."""
        later, self._later = self._later, None
        return self._now if later is None or later.resolve(self._now) else None

    def _deferred(self) -> LaterSum:
        if self._later is None:
            self._later = self._pace.later_sum()
        return self._later

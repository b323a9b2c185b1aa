# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Task "nan_check": finds the first call that turns finite inputs into NaN or Inf."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from probe.config.settings import Settings
from probe.entry import Entry, Kind
from probe.errors import NonFiniteError, ProbeError
from probe.measure.host import ExtremaMeasurer, Severity, TensorExtrema, severity
from probe.measure.measurer import ArraySink, Role
from probe.naming import COLLECTIVE, may_modify_inputs, written_outputs
from probe.pytree import leaves
from probe.recording.call import Call
from probe.recording.call_stacks import CallStacks
from probe.recording.measurement_queue import MeasurementQueue
from probe.store.arrays import DumpWriter
from probe.tasks.values import ValuesTask

_log = logging.getLogger("probe")

_INPUTS = ("input_args", "input_kwargs", "parameters"), ("input",)
_OUTPUTS = ("output",), ("output", "output_kwargs")
#: these make -inf of masks whose elements are large negative numbers
_MASK_APIS = re.compile(
    r"(?i)\.(_{0,2}[ri]?(add|sub|mul)_{0,2}|cast|astype|to|type_as|half|float|bfloat16)$"
)


class LookedAt(NamedTuple):
    """How much of a step was looked at, and whether NaN/Inf was seen anywhere: on purpose, or unexplained."""

    forward: int  # entries
    backward: int
    saw_nonfinite: bool


class NanCheck(ValuesTask):
    """Describes calls like task "tensor", and hands the entries to a ``FirstNonFinite``."""

    records_updates = False
    needs_complete_entries = True

    def __init__(
        self,
        finder: FirstNonFinite,
        queue: MeasurementQueue,
        sink: ArraySink,
        modes: frozenset[str],
    ) -> None:
        super().__init__(queue, lambda name: sink, modes)
        self._finder = finder

    def input_role(self, call: Call) -> Role:
        """Return the role of the inputs: values that the call may modify are copied."""
        return Role.CHANGEABLE_INPUT if may_modify_inputs(call.key) else Role.INPUT

    def should_write(self) -> bool:
        """Return whether a call was found."""
        return bool(self._finder.found)

    @property
    def looked_at(self) -> LookedAt:
        """How much of the step was looked at."""
        return self._finder.looked_at

    def end_step(self) -> list[str]:
        """Return warnings where NaN/Inf was seen, but no recorded call produced it."""
        return self._finder.warnings()


class _LastEntries(dict[str, Entry]):
    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def add(self, entry: Entry) -> None:
        """Add an entry, or further keys to one, as to those of parameters."""
        if entry.name in self:
            self[entry.name].parts.update(entry.parts)
            return
        self[entry.name] = entry
        if len(self) > self._most:
            del self[next(iter(self))]


class FirstNonFinite:
    """Keeps the last N entries in memory. When a call produces NaN/Inf, writes it and those N.

    * A call is found whose output is worse than its inputs; the order is finite, -inf, Inf, NaN.
    * Attention masks: a Cell, a sum, a product or a cast may make -inf, and a number of -inf may be an argument.
    * A backward is found that receives NaN/Inf although the recorded backward before it returned finite gradients:
      an operation between them is not recorded.
    * ``hits`` is the number of findings in earlier steps.
    """

    queue: MeasurementQueue  # hands entries to this object, and takes an error for the training

    def __init__(
        self,
        measurer: ExtremaMeasurer,
        writer: DumpWriter,
        stacks: CallStacks,
        settings: Settings,
        hits: int,
    ) -> None:
        self._measurer = measurer
        self._writer = writer
        self._stacks = stacks
        self._raises = settings.on_nan == "raise" and hits + 1 == settings.max_hits
        self._kept = _LastEntries(settings.last_calls)
        self._nonfinite_inputs: set[str] = (
            set()
        )  # forward entries with NaN/Inf inputs, and the Cells that contain them
        self._pending_parameter_gradients: dict[
            str, Entry
        ] = {}  # by Cell, until the Cell's backward comes
        self._backward_was_clean: dict[
            str, bool
        ] = {}  # by Cell: its backward received finite values only
        self._cell_stacks: dict[
            str, int
        ] = {}  # by Cell: it explains the gradients of its parameters
        self._first_inf: Entry | None = (
            None  # the first that made Inf on purpose, as far as is known
        )
        self._warnings: list[str] = []
        self.found = ""  # the name of the entry that was found
        self._counts = {False: 0, True: 0}  # entries that came, by is_backward

    @property
    def looked_at(self) -> LookedAt:
        """How much of the step was looked at."""
        return LookedAt(self._counts[False], self._counts[True], self._measurer.saw_nonfinite)

    def accept(self, entry: Entry) -> None:
        """Check a finished entry."""
        self._counts[entry.is_backward] += 1
        with self._writer.errors.guard("looking for NaN/Inf", entry.name):
            if not self.found and isinstance(entry.parts, dict):
                self._accept(entry, entry.parts)

    def warnings(self) -> list[str]:
        """Return what is to be said about a step without a finding."""
        for entry in self._pending_parameter_gradients.values():
            self._warn_unexplained(entry)
        return [] if self.found else self._warnings[:2]

    def _accept(self, entry: Entry, parts: dict[str, Any]) -> None:
        is_first_backward = entry.is_backward and "input" in parts and not self._backward_was_clean
        if is_first_backward and not all(leaf.is_ones for leaf in _extrema_in(parts["input"])):
            self._warnings.append(
                "The loss is computed outside of the recorded calls: NaN/Inf that it makes is not found. The first "
                f"gradient of the step arrives at {entry.name}."
            )
        if entry.kind is Kind.CELL and not entry.is_backward:
            self._cell_stacks[entry.key] = entry.stack
        if self._measurer.saw_nonfinite and self._check(entry, parts):
            return
        if entry.is_backward and "input" in parts:
            clean = entry.forward not in self._nonfinite_inputs and not _worst(parts["input"])
            self._backward_was_clean[entry.key] = clean and not _worst(parts.get("output"))
        for leaf in _extrema_in(parts):
            leaf.release()
        self._kept.add(entry)

    def _check(self, entry: Entry, parts: dict[str, Any]) -> bool:
        """Return whether this entry produced NaN/Inf, or may turn out to have; if it did, it is written."""
        if entry.kind is Kind.PARAMETER_GRADIENT:
            return self._check_parameter_gradient(entry)
        outputs = [parts.get(key) for key in _OUTPUTS[entry.is_backward]]
        gradient = (
            self._pending_parameter_gradients.pop(entry.key, None) if entry.is_backward else None
        )
        written = None if entry.is_backward else written_outputs(entry.key)
        after = _worst([part if written is None else part[:written] for part in outputs if part])
        if gradient is None and after is Severity.FINITE:
            return False
        inputs = [parts.get(key) for key in _INPUTS[entry.is_backward]]
        before = _worst(inputs)
        if (
            before
            >= after
            > max((leaf.severity for leaf in _extrema_in(inputs)), default=Severity.FINITE)
        ):
            self._first_inf = self._first_inf or entry  # a number of the user made it
            return False
        given = entry.forward in self._nonfinite_inputs or (before >= after and gradient is None)
        arrived = before is not Severity.FINITE and entry.is_backward
        if (
            given
            or arrived
            or before is Severity.NAN
            or (before is Severity.INF and self._nonfinite_inputs)
        ):
            return self._check_arrival(entry, before)
        may_be_mask = entry.kind is Kind.CELL or _MASK_APIS.search(entry.key)
        if after is Severity.NEGATIVE_INF and not entry.is_backward and may_be_mask:
            self._first_inf = self._first_inf or entry
            return False
        if gradient is not None:
            self._kept[entry.name] = entry
        found = gradient or entry
        of_inf = before is not Severity.FINITE
        message = f"First NaN/Inf: {found.name}. Its inputs are finite, its output is not."
        if of_inf and after is Severity.NAN:
            message = (
                f"First NaN: {found.name}. Its inputs have Inf and no NaN, its output has NaN."
            )
        elif of_inf:
            message = f"First NaN/Inf: {found.name}. Its inputs have -inf, its output has inf."
        self._write(found, message, of_inf)
        return True

    def _check_arrival(self, entry: Entry, before: Severity) -> bool:
        """Return whether NaN/Inf arrives at a backward from an unrecorded operation; note unexplained NaN/Inf."""
        if before is Severity.FINITE or (before is Severity.NEGATIVE_INF and not entry.is_backward):
            return False
        if before is Severity.INF and not entry.is_backward and self._first_inf is not None:
            return False
        clean = self._backward_was_clean
        unexplained = entry.forward not in self._nonfinite_inputs and not self._nonfinite_inputs
        if entry.is_backward and unexplained and clean and all(clean.values()):
            self._write(
                entry,
                f"First NaN/Inf in the gradient that arrives at {entry.name}, after an unrecorded operation.",
            )
            return True
        if not self._nonfinite_inputs:
            self._warn_unexplained(entry)
        names = [name for parent in entry.parents for name in parent if name is not None]
        self._nonfinite_inputs.update(
            name.replace(".backward", ".forward") for name in (entry.name, *names)
        )
        return False

    def _check_parameter_gradient(self, entry: Entry) -> bool:
        """Check a parameter's gradient against the backward of its Cell, which comes before or after it."""
        if not _worst(entry.parts) or not self._backward_was_clean.get(entry.key, True):
            return False
        if entry.key in self._backward_was_clean:
            self._write(
                entry,
                f"First NaN/Inf: {entry.name}. The gradients that arrive at its Cell are finite.",
            )
        else:
            self._pending_parameter_gradients.setdefault(entry.key, entry)
        return True

    def _warn_unexplained(self, entry: Entry) -> None:
        self._warnings.append(
            f"{entry.name} received NaN/Inf, but no recorded call produced it. It may come from the data, a weight, or "
            f"a call that is not recorded.{self._line(entry)}"
        )

    def _line(self, entry: Entry) -> str:
        line = self._stacks.user_line(max(entry.stack, self._cell_stacks.get(entry.key, -1)))
        return f" {line}" if line else ""

    def _reason(self, name: str) -> str:
        """Return why a call makes NaN/Inf, by the arrays that were written; "" where they do not tell it."""
        from probe.reading.dumps.dump import Dump
        from probe.reading.dumps.folders import find_folders
        from probe.reading.one_run.nan import why

        try:
            reason = str(why(Dump(find_folders(self._writer.folder)[0])[name]))
        except (LookupError, ArithmeticError, TypeError, ValueError, OSError, ProbeError):
            return ""
        return f" {reason[0].upper()}{reason[1:]}." if reason else ""

    def _write(self, entry: Entry, message: str, of_inf: bool = False) -> None:
        self.found = entry.name
        if [leaf for leaf in _extrema_in(entry.parts) if not leaf.complete(self._measurer.host)]:
            entry.parts["error"] = (
                "a tensor was modified in place during the call; only its Max and Min are known"
            )
        for kept in (*self._kept.values(), entry):
            self._writer.accept(kept)
            if kept.is_backward and kept.stack >= 0 and kept.forward not in self._kept:
                self._writer.documents.stack(kept.forward, kept.stack)  # it explains the backward
        self._kept.clear()
        self._writer.documents.write()
        if entry.name.partition(".")[0] in COLLECTIVE:
            message += " (a collective: the value came from another rank or from the reduction)"
        message += self._reason(entry.name) + self._line(entry)
        if of_inf and self._first_inf is not None:
            message += (
                f" (the first Inf is of {self._first_inf.name}:{self._line(self._first_inf)})"
            )
        _log.warning(
            "%s; its record and the calls before it are in %s", message, self._writer.folder
        )
        if self._raises:
            self.queue.pending_error = NonFiniteError(f"{message} ({self._writer.folder})")


def _extrema_in(value: Any) -> Iterator[TensorExtrema]:
    return (leaf for leaf in leaves(value) if type(leaf) is TensorExtrema)


def _worst(value: Any) -> Severity:
    return max(map(_severity, leaves(value)), default=Severity.FINITE)


def _severity(leaf: Any) -> Severity:
    if isinstance(leaf, TensorExtrema):
        return leaf.severity
    number = getattr(leaf, "value", leaf)
    return severity((number, number)) if isinstance(number, float) else Severity.FINITE

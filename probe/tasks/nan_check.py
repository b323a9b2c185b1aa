# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Task "nan_check": finds the first call that turns finite inputs into NaN or Inf."""

from __future__ import annotations

import logging
import math
import re
from typing import Any

from probe.config.settings import Settings
from probe.entry import Entry, Kind
from probe.errors import NonFiniteError
from probe.measure.extrema import ExtremaMeasurer, TensorExtrema
from probe.measure.measurer import ArraySink, Role
from probe.naming import COLLECTIVE, may_modify_inputs
from probe.pytree import leaves
from probe.recording.call import Call
from probe.recording.measurement_queue import MeasurementQueue
from probe.store.dump_writer import DumpWriter
from probe.tasks.values import ValuesTask

_log = logging.getLogger("probe")

_INPUTS = ("input_args", "input_kwargs", "parameters"), ("input",)
_OUTPUTS = ("output",), ("output", "output_kwargs")
#: its CPU kernel leaves some outputs after the first unwritten
_FIRST_OUTPUT_ONLY = re.compile(r"\.BatchNorm$")
#: these return uninitialized memory
_UNWRITTEN = re.compile(r"\.(new_)?empty(_like|_strided)?$")


class NanCheck(ValuesTask):
    """Describes calls like task "tensor", and hands the entries to a ``FirstNonFinite``."""

    needs_complete_entries = True

    def __init__(self, finder: FirstNonFinite, queue: MeasurementQueue, sink: ArraySink, modes: frozenset[str]) -> None:
        super().__init__(queue, lambda name: sink, modes)
        self._finder = finder

    def input_role(self, call: Call) -> Role:
        """Return the role of the inputs: values that the call may modify are copied."""
        return Role.CHANGEABLE_INPUT if may_modify_inputs(call.key) else Role.INPUT

    def should_write(self) -> bool:
        """Return whether a call was found."""
        return bool(self._finder.found)

    def end_step(self) -> str:
        """Return a warning if NaN/Inf was seen, but no recorded call produced it."""
        return self._finder.unexplained()


class FirstNonFinite:
    """Keeps the last N entries in memory. When a call produces NaN/Inf from finite inputs, writes it and those N.

    Args:
        measurer: measures the tensors.
        writer: the files of the step.
        settings: the number of kept entries, and whether to stop the training.

    Attributes:
        found: the name of the entry that was found, or "".
    """

    queue: MeasurementQueue  # it passes entries to this object, and takes an error for the training from it

    def __init__(self, measurer: ExtremaMeasurer, writer: DumpWriter, settings: Settings) -> None:
        self._measurer, self._writer = measurer, writer
        self._raises = settings.on_nan == "raise"
        self._most = settings.last_calls
        self._kept: dict[str, Entry] = {}
        self._nonfinite_inputs: set[str] = set()  # forward entries with NaN/Inf inputs, and the Cells that contain them
        self._pending_parameter_gradients: dict[str, Entry] = {}  # by Cell, until the Cell's backward comes
        self._backward_was_clean: dict[str, bool] = {}  # by Cell: its backward received finite values only
        self._first_nonfinite_input = ""
        self.found = ""

    def accept(self, entry: Entry) -> None:
        """Check a finished entry."""
        with self._writer.errors.guard("looking for NaN/Inf", entry.name):
            if not self.found and isinstance(entry.parts, dict):
                self._accept(entry, entry.parts)

    def unexplained(self) -> str:
        """Return a warning if NaN/Inf was seen and no recorded call produced it, else ""."""
        pending = (entry.name for entry in self._pending_parameter_gradients.values())
        name = self._first_nonfinite_input or next(pending, "")
        if not name or self.found:
            return ""
        return (
            f"{name} received NaN/Inf, but no recorded call produced it. It may come from the data, a weight, or a "
            "call that is not recorded."
        )

    def _accept(self, entry: Entry, parts: dict[str, Any]) -> None:
        if self._measurer.saw_nonfinite and self._check(entry, parts):
            return
        if entry.kind is Kind.CELL and "input" in parts:
            clean = entry.forward not in self._nonfinite_inputs and _all_finite(parts["input"])
            self._backward_was_clean[entry.key] = clean
        _release(parts)
        known = self._kept.get(entry.name)
        if known is not None:  # further keys of an entry, as of parameters_grad
            known.parts.update(parts)
            return
        self._kept[entry.name] = entry
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]

    def _check(self, entry: Entry, parts: dict[str, Any]) -> bool:
        """Return whether this entry produced NaN/Inf, or may have. If it did, it is written."""
        if entry.kind is Kind.PARAMETER_GRADIENT:
            return self._check_parameter_gradient(entry)
        outputs = [parts.get(key) for key in _OUTPUTS[entry.is_backward]]
        if not entry.is_backward and _FIRST_OUTPUT_ONLY.search(entry.key):
            outputs = [part[:1] for part in outputs if part]
        gradient = self._pending_parameter_gradients.pop(entry.key, None) if entry.is_backward else None
        unwritten = not entry.is_backward and _UNWRITTEN.search(entry.key)
        if unwritten or (gradient is None and _all_finite(outputs)):
            return False
        inputs = [parts.get(key) for key in _INPUTS[entry.is_backward]]
        if entry.forward in self._nonfinite_inputs or not _all_finite(inputs):
            self._note_nonfinite_inputs(entry)
            return False
        if entry.kind is Kind.CELL and not entry.is_backward and all(map(_finite_or_masked, leaves(outputs))):
            return False
        if gradient is not None:
            self._kept[entry.name] = entry
            _release(parts)
        self._write(gradient or entry)
        return True

    def _check_parameter_gradient(self, entry: Entry) -> bool:
        """Check a parameter's gradient against the backward of its Cell, which comes before or after it."""
        if _all_finite(entry.parts) or not self._backward_was_clean.get(entry.key, True):
            return False
        if entry.key in self._backward_was_clean:
            self._write(entry)
        else:
            self._pending_parameter_gradients.setdefault(entry.key, entry)
        return True

    def _note_nonfinite_inputs(self, entry: Entry) -> None:
        """Note that neither this call nor the Cells that contain it produced NaN/Inf."""
        self._first_nonfinite_input = self._first_nonfinite_input or entry.name
        names = [name for parent in entry.parents for name in parent if name is not None]
        self._nonfinite_inputs.update(name.replace(".backward", ".forward") for name in (entry.name, *names))

    def _write(self, entry: Entry) -> None:
        self.found = entry.name
        extrema = [leaf for leaf in leaves(entry.parts) if isinstance(leaf, TensorExtrema)]
        if [leaf for leaf in extrema if not leaf.complete(self._measurer.host)]:
            entry.parts["error"] = "a tensor was modified in place during the call; only its Max and Min are known"
        for kept in (*self._kept.values(), entry):
            self._writer.write(kept)
            if kept.is_backward and kept.stack >= 0 and kept.forward not in self._kept:
                self._writer.write_stack(kept.forward, kept.stack)  # it explains the backward
        self._kept.clear()
        self._writer.write_documents(end_of_step=True)
        message = f"First NaN/Inf: {entry.name}. Its inputs are finite, its output is not."
        if entry.name.partition(".")[0] in COLLECTIVE:
            message += " (a collective: the value came from another rank or from the reduction)"
        _log.warning("%s Its record and the calls before it are in %s", message, self._writer.folder)
        if self._raises:
            self.queue.raise_later(NonFiniteError(f"{message} ({self._writer.folder})"))


def _release(parts: dict[str, Any]) -> None:
    for leaf in leaves(parts):
        if type(leaf) is TensorExtrema:
            leaf.release()


def _all_finite(value: Any) -> bool:
    return all(map(_is_finite, leaves(value)))


def _finite_or_masked(leaf: Any) -> bool:
    """Return whether a value is finite, or only -inf (attention masks contain -inf on purpose)."""
    return not isinstance(leaf, TensorExtrema) or leaf.is_finite or leaf.only_negative_inf


def _is_finite(leaf: Any) -> bool:
    if isinstance(leaf, TensorExtrema):
        return leaf.is_finite
    number = getattr(leaf, "value", leaf)  # an argument of -inf is intended
    return not isinstance(number, float) or math.isfinite(number)

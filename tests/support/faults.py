# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Where failures are put into the tool."""

from __future__ import annotations

import importlib

#: every function that touches a file, and what else stands on the way of a call
DISK = [
    "probe.store.file_io.make_dirs",
    "probe.store.file_io.write",
    "probe.store.file_io.atomic_write",
    "probe.store.journal.Journal.open",
    "probe.store.journal.Journal.append",
    "probe.store.journal.Journal.remove",
    "probe.store.arrays.ArrayWriter.save",
    "probe.store.documents.JsonDocuments.write",
    "probe.store.disk_budget.DiskBudget.take",
]
TOOL = [
    "probe.capture.pynative.cells.CellHooks.install",
    "probe.capture.autograd.gradient_hooks.GradientHooks.plan",
    "probe.capture.autograd.gradient_hooks.GradientHooks.plan_cell",
    "probe.capture.autograd.gradient_hooks.GradientHooks.attach",
    "probe.capture.autograd.gradient_hooks.GradientHooks.advance",
    "probe.capture.autograd.gradient_hooks.GradientHooks.flush",
    "probe.capture.autograd.parameter_hooks.ParameterHooks.watch",
    "probe.capture.autograd.parameter_hooks.ParameterHooks.remove",
    "probe.capture.autograd.backward_entry.BackwardEntry.attach",
    "probe.capture.autograd.backward_entry.BackwardEntry._take_output",
    "probe.recording.call_stacks.CallStacks.number",
    "probe.measure.host.HostMeasurer.tensor",
    "probe.measure.host.HostMeasurer.sum",
    "probe.measure.host.HostMeasurer.total",
    "probe.measure.describe.ValueDescriber.value",
    "probe.recording.step_recorder.StepRecorder.call",
    "probe.recording.step_recorder.StepRecorder.cell_call",
    "probe.recording.step_recorder.StepRecorder.opens",
    "probe.recording.step_recorder.StepRecorder.begins",
    "probe.recording.step_recorder.StepRecorder.ends",
    "probe.recording.step_recorder.StepRecorder.gradient",
    "probe.recording.step_recorder.StepRecorder.backward_begins",
    "probe.recording.step_recorder.StepRecorder.backward_ends",
    "probe.recording.step_recorder.StepRecorder.parameter_gradient",
    "probe.store.documents.JsonDocuments.entry",
    "probe.store.documents.JsonDocuments.stack",
]


def owner_of(path):
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:-1]:
            found = getattr(found, name)
        return found, parts[-1]
    raise AssertionError(path)

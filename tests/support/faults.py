# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
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
    "probe.store.arrays.DiskBudget.reserve",
]
TOOL = [
    "probe.capture.pynative.cells.CellHooks.install",
    "probe.capture.autograd.gradient_hooks.GradientHooks.find_inputs",
    "probe.capture.autograd.gradient_hooks.GradientHooks.attach",
    "probe.capture.autograd.gradient_hooks.OpenBackwardEntries.advance",
    "probe.capture.autograd.gradient_hooks.GradientHooks.flush",
    "probe.capture.autograd.parameter_hooks.ParameterHooks.watch",
    "probe.capture.autograd.parameter_hooks.ParameterHooks.remove",
    "probe.capture.autograd.gradient_hooks.BackwardEntry.attach",
    "probe.capture.autograd.gradient_hooks.BackwardEntry._take_output",
    "probe.recording.call_stacks.CallStacks.number",
    "probe.measure.host.HostMeasurer.tensor",
    "probe.measure.measurer.GradientSum.add",
    "probe.measure.host.HostMeasurer.array",
    "probe.measure.describe.ValueDescriber.value",
    "probe.recording.call.Call.__init__",
    "probe.recording.step_recorder.StepRecorder._number",
    "probe.tasks.values.ValuesTask.inputs",
    "probe.tasks.values.ValuesTask.outputs",
    "probe.recording.step_recorder.StepRecorder._record_outputs",
    "probe.recording.step_recorder.StepRecorder._finish_forward",
    "probe.tasks.values.ValuesTask.gradient",
    "probe.recording.step_recorder.StepRecorder.begin_backward",
    "probe.recording.step_recorder.StepRecorder.end_backward",
    "probe.recording.step_recorder.StepRecorder.parameter_gradient",
    "probe.store.documents.JsonDocuments.entry",
    "probe.store.documents.JsonDocuments._record",
    "probe.snapshot.snapshot.Snapshot.begin",
    "probe.snapshot.snapshot.Snapshot.inputs",
    "probe.snapshot.snapshot.Snapshot.optimizer",
    "probe.snapshot.snapshot._checksums",
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

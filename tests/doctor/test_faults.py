# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A fault in one part of probe or MindSpore is reported by the check of this part, and by no other."""

from __future__ import annotations

import time

import mindspore as ms
import numpy as np
import pytest
from mindspore.communication import GlobalComm
from mindspore.ops import auto_generate

from probe.capture.autograd.nodes import AutogradNodes
from probe.capture.autograd.parameter_hooks import ParameterHooks
from probe.capture.pynative import jit
from probe.capture.pynative.context import CaptureContext
from probe.capture.pynative.operations import OperationHooks
from probe.debugger import PrecisionDebugger
from probe.doctor import environment, training
from probe.doctor.bench import CHECKS, OK, Bench
from probe.measure.reductions import Reductions
from probe.measure.tensor_reader import TensorReader
from probe.recording.step_recorder import StepRecorder
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

NAMES = [check.name for check in CHECKS]
#: takes a process of its own, so it runs only for its own fault
DEAR = "two processes"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Let the checks that repeat things repeat less."""
    for name, number in (("_STEPS", 1), ("_CALLS", 20), ("_ROUNDS", 1)):
        monkeypatch.setattr(training, name, number)


def findings(tmp_path, names):
    """Run checks in this process; return their findings by name."""
    chosen = [check for check in CHECKS if check.name in names]
    found = {}
    for check in chosen:
        folder = tmp_path / check.place.replace(":", "-")
        folder.mkdir()
        found[check.name] = check.function(
            Bench(ms.get_context("device_target"), str(tmp_path / "chosen"), str(folder))
        )
    return found


def around(monkeypatch, owner, name, stand_in):
    """Replace a method by a function that also receives the original."""
    original = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *args, **kwargs: stand_in(original, *args, **kwargs))


def old_numpy(monkeypatch):
    monkeypatch.setattr(np, "__version__", "1.19.5")


def wrong_sum(monkeypatch):
    def add(original, x, y):
        return original(x, y * 2) if x.shape == (2,) else original(x, y)

    around(monkeypatch, ms.Tensor, "__add__", add)


def missing_name(monkeypatch):
    monkeypatch.delattr(GlobalComm, "WORLD_COMM_GROUP")


def wrong_pointer(monkeypatch):
    def read(original, self, tensor):
        array = original(self, tensor)
        return array + 1 if array.dtype == np.uint32 else array

    around(monkeypatch, TensorReader, "__call__", read)


def no_pointer(monkeypatch):
    monkeypatch.setattr(TensorReader, "_agrees", lambda *_: False)


def wrong_bytes(monkeypatch):
    def read(original, tensor):
        array = original(tensor)
        return array + 1 if array.dtype == np.uint32 else array

    around(monkeypatch, ms.Tensor, "asnumpy", read)


def wrong_copies(monkeypatch):
    def copied(original, tensor):
        return original(tensor * 2 if tensor.dtype == ms.int16 else tensor)

    around(monkeypatch, auto_generate, "copy_op", copied)


def unseen_writes(monkeypatch):
    def write(original, tensor, source):
        return tensor if tensor.dtype == ms.int16 else original(tensor, source)

    around(monkeypatch, ms.Tensor, "copy_", write)


def unseen_classes(monkeypatch):
    monkeypatch.setattr(
        OperationHooks, "_run_private", lambda self, original, *args: original(*args)
    )


def unseen_parameters(monkeypatch):
    monkeypatch.setattr(ParameterHooks, "watch", lambda *_: None)


def wrong_gradients(monkeypatch):
    around(
        monkeypatch,
        StepRecorder,
        "parameter_gradient",
        lambda original, self, key, name, gradient, *more: original(
            self, key, name, gradient * 2, *more
        ),
    )


def broken_nodes(monkeypatch):
    monkeypatch.setattr(AutogradNodes, "newest_sequence_nr", lambda self: -1)


def unseen_functions(monkeypatch):
    monkeypatch.setattr(jit, "_wrap_executor", lambda context, original: original)


def changed_output(monkeypatch):
    def end(original, self, opened, result, *rest):
        if getattr(result, "shape", ()) == (8, 24):
            result[0, 0] = 0.5
        return original(self, opened, result, *rest)

    around(monkeypatch, CaptureContext, "end", end)


def identity_in_graph(monkeypatch):
    def start(original, debugger, model=None, *args):
        if hasattr(model, "second"):
            model.second.register_backward_hook(lambda *_: None)
        return original(model, *args)

    around(monkeypatch, PrecisionDebugger, "start", start)


def changed_parameter(monkeypatch):
    def start(original, debugger, model=None, *args):
        if hasattr(model, "second"):
            model.last.weight.set_data(model.last.weight * 1.0001)
        return original(model, *args)

    around(monkeypatch, PrecisionDebugger, "start", start)


def swapped_numbers(monkeypatch):
    def four(original, *args):
        floats, wholes = original(*args)
        return [*floats[1::-1], *floats[2:]], wholes

    around(monkeypatch, Reductions, "four", four)


def waiting(monkeypatch):
    def four(original, self, tensor, *args):
        tensor.asnumpy()
        return original(self, tensor, *args)

    around(monkeypatch, Reductions, "four", four)


def more_operations(monkeypatch):
    def four(original, self, tensor, *args):
        original(self, tensor, *args)
        return original(self, tensor, *args)

    around(monkeypatch, Reductions, "four", four)


def no_lock(monkeypatch):
    monkeypatch.setattr(environment, "_SECOND", f"{__name__}:record_without_lock")


def record_without_lock(*arguments):
    """Record in the second process, which looks for no lock."""
    from probe.store import journal, run_folders

    journal.lock = lambda file: True
    run_folders.RunFolders._of_other_runs = lambda *_: {}
    environment.record(*arguments)


def slow_calls(monkeypatch):
    def begin(original, self, kind, key, *args):
        if key == "Functional.relu":
            time.sleep(0.02)
        return original(self, kind, key, *args)

    around(monkeypatch, StepRecorder, "begin", begin)


FAULTS = [
    ("versions", old_numpy),
    ("device", wrong_sum),
    ("private names", missing_name),
    ("memory", wrong_pointer),
    ("memory", no_pointer),
    ("memory", wrong_bytes),
    ("calls", unseen_classes),
    ("gradients", unseen_parameters),
    ("gradients", wrong_gradients),
    ("gradients", broken_nodes),
    ("compiled calls", unseen_functions),
    ("bits", changed_output),
    ("bits", identity_in_graph),
    ("bits", changed_parameter),
    ("numbers", swapped_numbers),
    ("launches", waiting),
    ("launches", more_operations),
    (DEAR, no_lock),
    ("time", slow_calls),
]
#: on CPU the bytes at the pointer are the tensor: there is no way that could be wrong
ON_A_DEVICE = [("memory", wrong_copies), ("memory", unseen_writes)]


def test_every_check_has_a_fault_of_its_own():
    assert {name for name, _ in FAULTS} | {"folder"} == set(NAMES)


@pytest.mark.parametrize(
    ("name", "plant"),
    [
        *thorough_but(list(reversed(dict(reversed(FAULTS)).items())), FAULTS),
        *(pytest.param(*fault, marks=pytest.mark.ascend) for fault in ON_A_DEVICE),
    ],
    ids=[plant.__name__ for _, plant in FAULTS + ON_A_DEVICE],
)
def test_a_fault_is_reported_by_its_check_alone(monkeypatch, tmp_path, name, plant):
    (tmp_path / "chosen").mkdir()
    plant(monkeypatch)
    found = findings(tmp_path, [other for other in NAMES if name == DEAR or other != DEAR])
    assert {
        other: str(finding.fact)
        for other, finding in found.items()
        if finding.result != OK and other != name
    } == {}
    assert found[name].result != OK


def test_a_folder_without_write_access_is_reported_by_its_check_alone(tmp_path):
    (tmp_path / "chosen").touch()  # a file: nobody can write below it, root neither
    found = findings(tmp_path, [name for name in NAMES if name != DEAR])
    assert {name for name, finding in found.items() if finding.result != OK} == {"folder"}
    assert str(found["folder"].fact) == "the chosen folder cannot be written: Not a directory"

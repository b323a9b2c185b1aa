# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The states of a debugger as a user sees them: idle, recording, paused, detached, closed."""

from __future__ import annotations

import json
import os
import signal
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

from probe import PrecisionDebugger, UsageError
from tests.support import processes
from tests.support.paths import environment
from tests.support.tensors import tensor
from tests.support.watched import is_watched

X = tensor(np.arange(6.0).reshape(2, 3))

#: every public method but close, with arguments that are allowed
METHODS = {
    "start": lambda debugger: debugger.start(),
    "stop": lambda debugger: debugger.stop(),
    "step": lambda debugger: debugger.step(),
    "set_init_step": lambda debugger: debugger.set_init_step(3),
    "save": lambda debugger: debugger.save(X, "x"),
    "log": lambda debugger: debugger.log("a series", 1.0),
    "on_alarm": lambda debugger: debugger.on_alarm(None),
    "note": lambda debugger: debugger.note(learning_rate=0.1),
    "estimate": lambda debugger: debugger.estimate(),
    "register_custom_api": lambda debugger: debugger.register_custom_api(np, "sum"),
    "restore_custom_api": lambda debugger: debugger.restore_custom_api(np, "sum"),
    "forward_backward_dump_end": lambda debugger: debugger.forward_backward_dump_end(),
}


def state(debugger):
    return repr(debugger).rstrip(")").rpartition(", ")[2]


def records():
    """Return whether a call that is made now would be recorded."""
    return is_watched(ops.exp)


def test_the_list_of_methods_is_complete():
    public = {
        name for name, item in vars(PrecisionDebugger).items() if isinstance(item, classmethod)
    }
    assert {name for name in public if not name.startswith("_")} == {
        *METHODS,
        "close",
        "recording",
    }


def test_the_repr_names_the_settings_and_the_state(debug):
    debugger = debug(task="tensor", level="L1")
    start = f"PrecisionDebugger(task='tensor', level='L1', dump_path='{debug.dump_path}', "
    assert repr(debugger) == f"{start}idle)"
    debugger.start()
    assert repr(debugger) == f"{start}recording)"
    debugger.stop()
    assert repr(debugger) == f"{start}paused)"
    debugger.start()
    assert repr(debugger) == f"{start}recording)"
    debugger.step()
    assert repr(debugger) == f"{start}idle)"
    debugger.close()
    assert repr(debugger) == f"{start}closed)"


def test_stop_and_step_without_start_write_nothing_and_step_counts(debug):
    debugger = debug()
    debugger.stop()
    debugger.step()
    debugger.forward_backward_dump_end()
    debugger.step()
    assert state(debugger) == "idle"
    assert not debug.dump_path.exists()
    debugger.start()
    ops.exp(X)
    debugger.step()
    assert list(debug.dump(2).data) == ["Functional.exp.0.forward"]


def test_start_twice_goes_on_recording_the_same_step(debug):
    debugger = debug()
    debugger.start()
    ops.exp(X)
    debugger.start()
    ops.exp(X)
    assert state(debugger) == "recording"
    debugger.step()
    assert list(debug.dump().data) == ["Functional.exp.0.forward", "Functional.exp.1.forward"]
    assert not records()


def test_stop_twice_and_step_twice_write_once(debug):
    debugger = debug()
    debugger.start()
    ops.exp(X)
    debugger.stop()
    written = os.stat(debug.dump().folder / "dump.json").st_mtime_ns
    debugger.stop()
    debugger.step()
    debugger.step()
    assert os.stat(debug.dump().folder / "dump.json").st_mtime_ns == written
    assert os.listdir(debug.dump_path) == ["step0"]


def test_a_start_that_is_refused_leaves_the_state_as_it_was(debug):
    debugger = debug()
    for begins in (False, True):
        if begins:
            debugger.start()
        before = state(debugger), records()
        with pytest.raises(UsageError):
            debugger.start("no model")
        with pytest.raises(UsageError):
            debugger.start(rank_id=-1)
        assert (state(debugger), records()) == before
    debugger.step()


def test_the_number_of_the_next_step_cannot_be_set_while_recording(debug):
    debugger = debug()
    debugger.start()
    with pytest.raises(UsageError, match="before start"):
        debugger.set_init_step(5)
    assert state(debugger) == "recording"
    ops.exp(X)
    debugger.stop()
    debugger.set_init_step(5)  # ends the open step
    assert state(debugger) == "idle"
    assert list(debug.dump(0).data) == ["Functional.exp.0.forward"]
    debugger.start()
    ops.exp(X)
    debugger.step()
    assert list(debug.dump(5).data) == ["Functional.exp.0.forward"]


def test_a_step_that_is_not_wanted_stays_idle(debug):
    debugger = debug(step=[1])
    debugger.start()
    assert (state(debugger), records()) == ("idle", False)
    debugger.step()
    debugger.start()
    assert (state(debugger), records()) == ("recording", True)
    debugger.step()


def test_save_opens_a_step_that_step_ends(debug):
    debugger = debug(level="debug")
    debugger.start()
    debugger.save(X, "x")
    debugger.step()
    data = json.loads((debug.dump_path / "step0" / "rank" / "debug.json").read_text())["data"]
    assert list(data) == ["x.0.debug", "x_grad.0.debug"]
    assert state(debugger) == "idle"


# -- close ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("from_state", ["idle", "recording", "paused"])
def test_close_completes_the_open_step_and_gives_everything_back(debug, from_state):
    sigterm = signal.getsignal(signal.SIGTERM)
    debugger = debug()
    if from_state != "idle":
        debugger.start()
        ops.exp(X)
    if from_state == "paused":
        debugger.stop()
    assert state(debugger) == from_state
    debugger.close()
    assert state(debugger) == "closed"
    assert not records()
    assert signal.getsignal(signal.SIGTERM) == sigterm
    assert debug.dump_path.exists() == (from_state != "idle")
    if from_state != "idle":
        assert "output" in debug.dump().data["Functional.exp.0.forward"]
        assert not (debug.dump().folder / "dump.journal").exists()


def test_close_completes_a_step_of_saved_values(debug):
    debugger = debug(level="debug")
    debugger.save(X, "x")
    debugger.close()
    rank = debug.dump_path / "step0" / "rank"
    assert "x.0.debug" in json.loads((rank / "debug.json").read_text())["data"]
    assert os.listdir(rank) == ["debug.json"]


@pytest.mark.parametrize("from_state", ["recording", "paused"])
def test_close_removes_the_hooks_of_parameters(debug, from_state):
    net = nn.SequentialCell(nn.Dense(3, 2))
    debugger = debug(level="mix")
    debugger.start(net)
    ms.value_and_grad(net, None, net.trainable_params())(X)
    if from_state == "paused":
        debugger.stop()
    assert all(parameter.hooks() for parameter in net.trainable_params())
    debugger.close()
    assert not any(parameter.hooks() for parameter in net.trainable_params())


@pytest.mark.parametrize("name", METHODS)
def test_a_closed_debugger_says_so_when_it_is_used(debug, name):
    debugger = debug()
    debugger.close()
    with pytest.raises(UsageError, match=r"this PrecisionDebugger is closed\. Make a new one"):
        METHODS[name](debugger)
    with pytest.raises(UsageError, match="is closed"):
        METHODS[name](PrecisionDebugger)
    assert state(debugger) == "closed"
    assert not debug.dump_path.exists()


def test_close_may_be_called_twice_on_the_object_and_on_the_class(debug):
    debugger = debug()
    debugger.start()
    ops.exp(X)
    debugger.close()
    written = os.stat(debug.dump().folder / "dump.json").st_mtime_ns
    debugger.close()
    PrecisionDebugger.close()
    assert state(debugger) == "closed"
    assert os.stat(debug.dump().folder / "dump.json").st_mtime_ns == written


def test_a_call_after_close_is_not_recorded(debug):
    debugger = debug()
    debugger.start()
    debugger.close()
    ops.exp(X)
    assert debug.dump().data == {}


def test_after_close_a_new_debugger_may_have_the_same_or_other_settings(debug, tmp_path):
    first = debug(overwrite=True)
    first.start()
    ops.exp(X)
    first.close()
    second = debug(overwrite=True)
    assert (state(first), state(second)) == ("closed", "idle")
    second.start()
    ops.tanh(X)
    second.step()
    assert list(debug.dump().data) == [
        "Functional.tanh.0.forward"
    ]  # counters and steps begin again
    second.close()
    third = debug(dump_path=str(tmp_path / "other"), level="L0")
    third.start(nn.ReLU())
    third.step()
    assert (tmp_path / "other" / "step0" / "rank" / "dump.json").exists()
    assert [state(one) for one in (first, second, third)] == ["closed", "closed", "idle"]


def test_after_close_a_new_debugger_of_the_process_replaces_the_step_that_it_wrote(debug):
    first = debug(task="tensor")
    first.start()
    ops.exp(X)
    first.close()
    second = debug(task="tensor")
    second.start()
    ops.sin(X)
    second.step()
    assert list(debug.dump().data) == ["Functional.sin.0.forward"]
    assert not list(debug.dump_path.rglob("Functional.exp*"))
    assert not (debug.path / "dump-2").exists()


def test_a_debugger_with_other_settings_closes_the_one_before(debug, tmp_path):
    first = debug()
    first.start()
    ops.exp(X)
    first.stop()
    second = debug(dump_path=str(tmp_path / "other"))
    assert (state(first), state(second)) == ("closed", "idle")
    assert "output" in debug.dump().data["Functional.exp.0.forward"]
    first.step()  # methods work on the class: they are those of the living one
    assert state(second) == "idle"


def test_a_debugger_with_equal_settings_shares_the_state(debug):
    first, second = debug(), debug()
    first.start()
    assert state(second) == "recording"
    second.close()
    assert state(first) == "closed"


def test_a_gradient_that_comes_after_close_is_ignored(debug):
    debugger = debug()

    def forward(x):
        debugger.start()
        y = ops.exp(x)
        debugger.close()
        return y

    gradient = ms.grad(forward)(X)
    np.testing.assert_allclose(gradient.asnumpy(), np.exp(X.asnumpy()), rtol=1e-5)
    assert list(debug.dump().data) == ["Functional.exp.0.forward"]


# -- processes of their own ----------------------------------------------------------------------------------------

PRELUDE = """
import os, sys
import mindspore as ms
import numpy as np
from mindspore import ops
ms.set_context(mode=ms.PYNATIVE_MODE)
from probe import PrecisionDebugger, UsageError
x = ms.Tensor(np.ones(3, np.float32))
"""


def run(code, *arguments, **variables):
    command = [sys.executable, "-c", PRELUDE + code, *map(str, arguments)]
    done = processes.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=environment(**variables),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


BEFORE = """
for name, arguments in (("start", ()), ("stop", ()), ("step", ()), ("save", (x, "x")), ("set_init_step", (1,))):
    try:
        getattr(PrecisionDebugger, name)(*arguments)
    except UsageError as error:
        print(name, error)
PrecisionDebugger.close()
print("closed nothing")
"""


@pytest.mark.slow
def test_methods_of_the_class_need_a_debugger_and_close_does_not():
    *said, last = run(BEFORE)
    assert len(said) == 5
    assert all("there is no PrecisionDebugger yet" in line for line in said)
    assert last == "closed nothing"


FORK = """
debugger = PrecisionDebugger(dump_path=sys.argv[1], level="L1")
if sys.argv[2] != "idle":
    debugger.start()
    ops.relu(x)
if sys.argv[2] == "paused":
    debugger.stop()
before = sorted(os.listdir(sys.argv[1] + "/step0/rank")) if os.path.exists(sys.argv[1]) else []
child = os.fork()
if not child:
    print(repr(debugger).rpartition(", ")[2], flush=True)
    debugger.start()
    debugger.save(x, "x")
    debugger.stop()
    debugger.step()
    debugger.set_init_step(7)
    print(repr(debugger).rpartition(", ")[2], flush=True)
    debugger.close()
    debugger.close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(before == (sorted(os.listdir(sys.argv[1] + "/step0/rank")) if os.path.exists(sys.argv[1]) else []))
if sys.argv[2] != "recording":
    debugger.start()
ops.exp(x)
debugger.step()
print(repr(debugger).rpartition(", ")[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize("from_state", ["idle", "recording", "paused"])
def test_in_a_forked_child_every_method_does_nothing_and_the_parent_goes_on(tmp_path, from_state):
    said = run(FORK, tmp_path / "dump", from_state)
    assert said == ["detached)", "detached)", "True", "idle)"]
    data = json.loads((tmp_path / "dump" / "step0" / "rank" / "dump.json").read_text())["data"]
    assert list(data)[-1] == "Functional.exp.0.forward"
    assert os.listdir(tmp_path / "dump") == ["step0"]


FORK_AND_NEW = """
debugger = PrecisionDebugger(dump_path=sys.argv[1], level="L1")
debugger.start()
ops.relu(x)
child = os.fork()
if not child:
    own = PrecisionDebugger(dump_path=sys.argv[2], level="L1")
    print(repr(own).rpartition(", ")[2], flush=True)
    own.step()
    own.close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
debugger.step()
"""


@pytest.mark.slow
def test_a_debugger_that_a_forked_child_makes_leaves_the_parents_alone(tmp_path):
    assert run(FORK_AND_NEW, tmp_path / "parent", tmp_path / "child") == ["idle)"]
    rank = tmp_path / "parent" / "step0" / "rank"
    assert (
        "output"
        in json.loads((rank / "dump.json").read_text())["data"]["Functional.relu.0.forward"]
    )
    assert not (rank / "dump.journal").exists()


SCHEDULER = """
debugger = PrecisionDebugger(dump_path=sys.argv[1], level="L1")
print(repr(debugger).rpartition(", ")[2])
debugger.start()
ops.relu(x)
debugger.stop()
debugger.step()
debugger.close()
print(os.path.exists(sys.argv[1]))
"""


@pytest.mark.slow
def test_the_scheduler_of_msrun_records_nothing(tmp_path):
    assert run(SCHEDULER, tmp_path / "dump", MS_ROLE="MS_SCHED") == ["detached)", "False"]

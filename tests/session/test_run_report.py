# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The line at the end of a run, the reasons why nothing was recorded, and errors of usage as a user sees them."""

from __future__ import annotations

import json
import logging
import sys
import traceback

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

from probe import MsprobeStep, PrecisionDebugger, UsageError
from probe.config.settings import Settings
from probe.session.recording import RunReport
from tests.support import processes
from tests.support.paths import environment
from tests.support.tensors import tensor
from tests.support.watched import is_watched

X = tensor(np.arange(6.0).reshape(2, 3))


def train(debugger, *arguments, steps=1, **keywords):
    for _ in range(steps):
        debugger.start(*arguments, **keywords)
        ops.exp(X)
        debugger.stop()
        debugger.step()


# -- where the dump is -------------------------------------------------------------------------------------------------


def test_the_line_at_the_end_is_on_stderr_and_names_the_folder_and_the_command(debug, capsys):
    train(debug(), steps=4)
    PrecisionDebugger.close()
    folder = debug.dump_path
    assert capsys.readouterr().err.splitlines() == [
        f"probe: 4 steps in {folder}; look with: probe show {folder}"
    ]


def test_the_line_goes_through_logging_where_a_handler_takes_it(debug, capsys, caplog):
    caplog.set_level(logging.INFO, "probe")
    train(debug())
    PrecisionDebugger.close()
    assert capsys.readouterr().err == ""
    assert caplog.messages[-1].startswith(f"1 step in {debug.dump_path}; look with: ")


def test_the_line_names_each_folder_of_the_process(debug, capsys):
    for name in ("a", "b c"):
        train(debug(dump_path=str(debug.path / name)))
    PrecisionDebugger.close()
    assert [line.partition("look with: ")[2] for line in capsys.readouterr().err.splitlines()] == [
        f"probe show {debug.path}/a",
        f"probe show '{debug.path}/b c'",
    ]


def test_quiet_turns_the_line_and_the_reason_off(debug, capsys, caplog):
    train(debug(quiet=True))
    PrecisionDebugger.close()
    debug(quiet=True)
    PrecisionDebugger.close()
    assert capsys.readouterr().err == ""
    assert caplog.messages == []


@pytest.mark.parametrize(("rank", "lines"), [(0, 1), (1, 0)])
def test_rank_0_alone_says_the_line(debug, capsys, monkeypatch, rank, lines):
    monkeypatch.setenv("RANK_ID", str(rank))
    monkeypatch.setenv("RANK_SIZE", "2")
    train(debug())
    PrecisionDebugger.close()
    assert len(capsys.readouterr().err.splitlines()) == lines


def test_a_run_without_step_is_told_that_it_counts_as_one(debug, capsys):
    debugger = debug()
    for _ in range(3):
        debugger.start()
        ops.exp(X)
        debugger.stop()
    PrecisionDebugger.close()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("probe: 1 step in ")
    assert "step() was never called" in line


AT_EXIT = """
import sys, types
import mindspore as ms, numpy as np
ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
from probe import PrecisionDebugger
if "notebook" in sys.argv:
    sys.modules["ipykernel"] = types.ModuleType("ipykernel")
debugger = PrecisionDebugger(dump_path="dump", step=[1, 2, 3])
for cell in range(2):
    for step in range(3):
        debugger.start()
        ms.ops.exp(ms.Tensor(np.ones(3, np.float32)))
        debugger.stop()
        debugger.step()
    print("end of cell", file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["program", "notebook"])
def test_the_line_comes_once_at_the_end_and_in_a_notebook_at_step_too(tmp_path, where):
    command = [sys.executable, "-c", AT_EXIT, where]
    done = processes.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    lines = [
        line
        for line in done.stderr.splitlines()
        if line.startswith("probe: ") or line == "end of cell"
    ]
    look = f"in {tmp_path}/dump; look with: probe show {tmp_path}/dump"
    if where == "program":
        assert lines == ["end of cell", "end of cell", f"probe: 3 steps {look}"]
    else:
        assert lines == [
            f"probe: 1 step {look}",
            "end of cell",
            "end of cell",
            f"probe: 3 steps {look}",
        ]
        assert (
            "the setting step ends with 3: no more is recorded. set_init_step(n) goes back"
            in done.stderr
        )


def test_a_notebook_cell_that_is_run_twice_records_twice(debug):
    for _ in range(2):
        train(PrecisionDebugger(dump_path=debug.dump_path), steps=2)
    assert sorted(path.name for path in debug.dump_path.iterdir()) == [
        "step0",
        "step1",
        "step2",
        "step3",
    ]


def test_a_notebook_cell_that_is_run_twice_says_why_it_records_no_more(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    for cell in range(3):
        caplog.clear()
        train(debug(step=[0, 1]), steps=2)
        said = ["the setting step ends with 1: no more is recorded"] if cell else []
        assert [message.partition(".")[0] for message in caplog.messages] == said


def test_a_program_that_goes_on_after_its_last_wanted_step_says_nothing(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    train(debug(step=[0, 1]), steps=5)
    assert caplog.messages == []


def test_a_notebook_cell_with_nan_check_says_why_it_watches_no_more(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    for _ in range(2):
        caplog.clear()
        debugger = debug(task="nan_check")
        debugger.start()
        ops.log(tensor([0.0]))
        debugger.step()
    assert caplog.messages == [
        "nan_check: max_hits is reached, nothing more is watched. A new run watches again"
    ]


# -- why nothing was recorded ------------------------------------------------------------------------------------------


def _never_started(debug):
    debug()


def _never_reached(debug):
    train(debug(step=[7]), steps=3)


def _without_step(debug):
    debugger = debug(step=[1])
    for _ in range(2):
        debugger.start()
        ops.exp(X)
        debugger.stop()


def _disabled(debug):
    train(debug(dump_enable=False))


def _rank_not_wanted(debug):
    train(debug(rank=[3]), rank_id=0)


def _without_model(debug):
    dense, debugger = nn.Dense(3, 2), debug(unlisted=False)
    debugger.start()
    dense(X)
    debugger.step()


def _one_layer(debug):
    dense, debugger = nn.Dense(3, 2), debug(level="L0")
    debugger.start(dense)
    dense(X)
    debugger.step()


def _token_range(debug):
    net, debugger = nn.SequentialCell(nn.Dense(3, 2)), debug(level="mix")
    debugger.start(net, token_range=[4, 5])
    net(X)
    debugger.step()


def _no_match(debug):
    train(debug(list=["nothing"]), nn.SequentialCell(nn.ReLU()))


REASONS = {
    _never_started: "start() was never called",
    _never_reached: "the training had 3 steps, and none is in the setting step",
    _without_step: "step() was never called, and step 0 is not in the setting step",
    _disabled: '"dump_enable" is false',
    _rank_not_wanted: "rank 0 is not in the setting rank",
    _without_model: "start(model) records the Primitives of Cells too",
    _one_layer: "the model has no Cells below it",
    _token_range: "the model did not reach the forwards of token_range [4, 5]",
    _no_match: "no call was made between start() and stop(), or scope and list matched none",
}


@pytest.mark.parametrize("run", REASONS, ids=lambda run: run.__name__.strip("_"))
def test_a_warning_says_why_nothing_was_recorded(debug, caplog, capsys, run):
    run(debug)
    PrecisionDebugger.close()
    (message,) = [message for message in caplog.messages if "nothing was recorded" in message]
    assert REASONS[run] in message
    assert "look with" not in capsys.readouterr().err
    assert [
        json.loads(path.read_text())["data"] for path in debug.dump_path.rglob("dump.json")
    ] in ([], [{}])


def test_a_run_that_could_write_no_document_says_so(caplog):
    report = RunReport()
    report.starts = report.steps = 1
    report.add_step(0, "/dump", is_written=False)
    report.say(Settings(), None)
    assert caplog.messages[-1] == "nothing was recorded: the documents could not be written"


# -- recording ---------------------------------------------------------------------------------------------------------


def test_recording_starts_on_entry_and_stops_on_exit_and_step_stays_the_users(debug):
    debugger = debug()
    for _ in range(2):
        with debugger.recording(nn.SequentialCell(nn.ReLU())):
            ops.exp(X)
        ops.sin(X)
    debugger.step()
    assert list(debug.dump().data) == ["Functional.exp.0.forward", "Functional.exp.1.forward"]


def test_recording_stops_on_an_exception_and_lets_it_pass(debug):
    error = ValueError("the training's own")

    def step():
        with debug().recording():
            ops.exp(X)
            raise error

    with pytest.raises(ValueError, match="own") as raised:
        step()
    assert raised.value is error
    ops.sin(X)
    assert not is_watched(ops.exp)
    assert list(debug.dump().data) == ["Functional.exp.0.forward"]


def test_recording_takes_token_range_and_rank_id(debug):
    net = nn.SequentialCell(nn.Dense(3, 3))
    with debug(level="mix").recording(net, token_range=[1, 1], rank_id=5):
        for _ in range(3):
            net(X)
    assert debug.dump(rank=5).names("Cell") == ["Cell.0.Dense.forward.0"]


def test_a_test_that_raised_between_start_and_stop_does_not_break_the_next_test(debug):
    class First(nn.Cell):
        def construct(self, x):
            raise ValueError("in the test")

    first = debug(dump_path=str(debug.path / "first"), level="mix")
    first.start(First())
    with pytest.raises(ValueError, match="in the test"):
        First()(ops.exp(X))
    second = nn.SequentialCell(nn.Dense(3, 2))
    debugger = debug(level="mix")
    debugger.start(second)
    second(X)
    debugger.stop()
    debugger.step()
    assert list(debug.dump().data)[-1] == "Cell.0.Dense.forward.0"
    assert (debug.path / "first" / "step0" / "rank" / "dump.json").exists()


def test_a_test_that_raised_and_one_with_equal_settings_share_a_step(debug):
    def fails():
        debug().start()
        ops.exp(X)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    train(debug())
    assert list(debug.dump().data) == ["Functional.exp.0.forward", "Functional.exp.1.forward"]
    assert not is_watched(ops.exp)


# -- errors of usage ---------------------------------------------------------------------------------------------------


def _enter(debugger):
    with debugger.recording(rank_id=-1):
        pass


MISTAKES = {
    "start": lambda debugger: debugger.start(token_range=[0, 1]),
    "class": lambda debugger: PrecisionDebugger.start(model=3),
    "recording": _enter,
    "set_init_step": lambda debugger: debugger.set_init_step(-1),
    "save": lambda debugger: debugger.save(1, ""),
    "estimate": lambda debugger: debugger.estimate(),
    "register": lambda debugger: debugger.register_custom_api(ops, "no_such"),
    "restore": lambda debugger: debugger.restore_custom_api(ops, "no_such"),
    "constructor": lambda debugger: PrecisionDebugger(task="tensr"),
    "no file": lambda debugger: PrecisionDebugger(config_path="/nowhere.json"),
    "broken file": lambda debugger: PrecisionDebugger(config_path=__file__[:-3] + ".json"),
    "closed": lambda debugger: (debugger.close(), debugger.step()),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_error_of_usage_shows_the_frame_of_the_user_and_one_of_ours(debug, mistake):
    debugger = debug()
    with pytest.raises((UsageError, ValueError)) as raised:
        MISTAKES[mistake](debugger)
    text = "".join(traceback.format_exception(raised.type, raised.value, raised.tb))
    frames = [line for line in text.splitlines() if line.startswith("  File ")]
    assert frames[0].partition('"')[2].startswith(__file__)
    assert __file__ in frames[-2]
    assert "errors.py" in frames[-1]
    assert "During handling" not in text
    assert "direct cause" not in text


def test_a_mistake_of_the_callback_names_it(debug):
    with pytest.raises(UsageError, match=r"MsprobeStep\(\): debugger is int"):
        MsprobeStep(3)


# -- stacks ------------------------------------------------------------------------------------------------------------


def test_frames_without_source_are_kept_in_stack_json(debug):
    code = compile("def made(x):\n    return ops.exp(x)\n", "<generated>", "exec")
    space = {"ops": ops}
    exec(code, space)
    _, dump = debug.record(lambda: space["made"](X))
    ((_, lines),) = dump.stack.values()
    assert lines[0] == "File <generated>, line 2, in made, \n "
    assert f"File {__file__}" in lines[1]
    assert ms.__file__  # the rest of the stack is pytest's


def test_a_list_that_matches_no_cell_is_not_told_as_a_model_without_cells(debug, caplog):
    debugger = debug(level="L0", list=["nothing"])
    train(debugger, nn.SequentialCell(nn.Dense(3, 2), nn.ReLU()))
    PrecisionDebugger.close()
    assert "scope and list matched none" in caplog.text
    assert "has no Cells" not in caplog.text

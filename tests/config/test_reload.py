# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A config file that is edited while the training runs."""

from __future__ import annotations

import json
import logging
import os

import pytest
from mindspore import nn, ops

from probe import PrecisionDebugger
from tests.support.dumps import Dump
from tests.support.tensors import tensor

pytestmark = pytest.mark.medium

X = tensor([[1.0, -2.0], [3.0, 0.5]])


def test_edits_switch_recording_on_and_off_and_a_broken_edit_changes_nothing(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    debugger = debug(dump_enable=False)
    path = debug.path / "config.json"
    written = []

    def edit(text):
        stamp = os.stat(path).st_mtime_ns
        path.write_text(text)
        os.utime(path, ns=(stamp + 10**9, stamp + 10**9))

    settings = json.loads(path.read_text())
    edits = {
        1: {**settings, "dump_enable": True},
        3: {**settings, "dump_enable": False},
        5: "{broken",
        7: {**settings, "dump_enable": True, "level": "mix"},
    }
    for step in range(9):
        if step in edits:
            edit(edits[step] if isinstance(edits[step], str) else json.dumps(edits[step]))
        debugger.start(nn.SequentialCell(nn.ReLU()))
        ops.exp(X)
        debugger.stop()
        debugger.step()
        written.append((debug.dump_path / f"step{step}").exists())
    assert written == [False, True, True, False, False, False, False, True, True]
    assert debug.dump(1).header["level"] == "L1"
    assert debug.dump(7).header["level"] == "mix"
    messages = [message for message in caplog.messages if "config file changed" in message]
    assert len(messages) == 4
    assert "line 1, column 2" in messages[2]


def _edit(path, **changes):
    stamp = os.stat(path).st_mtime_ns
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    os.utime(path, ns=(stamp + 10**9, stamp + 10**9))


@pytest.mark.parametrize(
    "wrong",
    [
        {"level": "mix"},
        {"task": "structure"},
        {"support_ops": "/nonexistent"},
        {"level": "debug", "task": "structure"},
    ],
)
def test_an_edit_that_cannot_be_used_never_reaches_the_training(debug, caplog, wrong):
    caplog.set_level(logging.WARNING, "probe")
    debugger = debug(level="L1")
    for step in range(3):
        if step == 1:
            _edit(debug.path / "config.json", **wrong)
        debugger.start()  # without the model, which mix would need
        ops.exp(X)
        debugger.stop()
        debugger.step()
    assert [debug.dump(step).header["level"] for step in range(3)] == ["L1"] * 3
    assert sum("keeping the previous settings" in message for message in caplog.messages) == 1


def test_an_edit_to_the_folder_of_another_run_goes_on_beside_it(debug, caplog, tmp_path):
    caplog.set_level(logging.WARNING, "probe")
    other = tmp_path / "other" / "step1" / "rank"
    other.mkdir(parents=True)
    (other / "dump.json").write_text("{}")
    debugger = debug()
    for step in range(2):
        if step == 1:
            _edit(debug.path / "config.json", dump_path=str(tmp_path / "other"))
        debugger.start()
        ops.exp(X)
        debugger.step()
    assert (other / "dump.json").read_text() == "{}"
    assert Dump(tmp_path / "other-2" / "step1" / "rank").names("exp")
    (message,) = [
        message for message in caplog.messages if "holds the dump of another run" in message
    ]
    assert f"this run writes into {tmp_path}/other-2" in message


def test_an_edit_to_an_unusable_folder_is_refused_and_the_run_goes_on(debug, caplog, tmp_path):
    caplog.set_level(logging.WARNING, "probe")
    (tmp_path / "other").write_text("")
    debugger = debug()
    for step in range(2):
        if step == 1:
            _edit(debug.path / "config.json", dump_path=str(tmp_path / "other" / "dump"))
        debugger.start()
        ops.exp(X)
        debugger.step()
    assert debug.dump(1).names("exp")
    assert (
        sum("keeping the previous settings: dump_path" in message for message in caplog.messages)
        == 1
    )


def test_edits_from_one_folder_to_another_and_back_write_both(debug, caplog, tmp_path):
    caplog.set_level(logging.WARNING, "probe")
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    debugger = debug(dump_path=a)
    for step, folder in enumerate([a, b, a, b]):
        _edit(debug.path / "config.json", dump_path=folder)
        debugger.start()
        ops.exp(X)
        debugger.step()
        assert Dump(f"{folder}/step{step}/rank").names("exp")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "config.json"]
    assert not any("another run" in message for message in caplog.messages)


def test_a_debugger_made_again_after_an_edit_continues_the_run(debug):
    debugger = debug()
    for step in range(3):
        if step:
            _edit(debug.path / "config.json", dump_enable=step == 2)
        debugger = PrecisionDebugger(config_path=str(debug.path / "config.json"))
        debugger.start()
        ops.exp(X)
        debugger.step()
    assert sorted(path.name for path in debug.dump_path.iterdir()) == ["step0", "step2"]

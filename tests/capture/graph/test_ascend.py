# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Graphs that write their tensors into files, as on Ascend. The operators are stand-ins; the files are MindSpore's."""

from __future__ import annotations

import pytest
from mindspore._c_expression import _tensordump_set_step

from probe import PrecisionDebugger
from probe.capture.graph import compiled_graphs, dumped_files
from tests.capture.graph.test_own_loop import build, train
from tests.support import tensordump
from tests.support.dumps import Dump
from tests.support.thorough import thorough_but

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("graph_mode"), pytest.mark.thorough]


def forget_graphs():
    """Go on as in another process."""
    PrecisionDebugger.close()
    PrecisionDebugger._living = None


@pytest.fixture(autouse=True)
def _own_process():
    """Let each test begin without graphs, and let TensorDump write after it."""
    forget_graphs()
    yield
    forget_graphs()
    _tensordump_set_step([])


@pytest.fixture
def channel(monkeypatch):
    """Return the channel of a device that is Ascend for the tool."""
    channel = tensordump.Channel()
    monkeypatch.setattr(compiled_graphs, "device_target", lambda: "Ascend")
    monkeypatch.setattr(compiled_graphs, "ascend_operators", lambda: tensordump.operators(channel))
    return channel


def raw_files(folder):
    return sorted(path.name for path in folder.rglob(".tensordump-*/*"))


#: Cells that are called several times in one graph
REPEATED = {"many": ["Cell.twice"], "branches": ["Cell.again"]}


NETS = ["lenet", "digits", "gpt", "many", "brain", "scalars", "empties", "unknown"]


@pytest.mark.parametrize("name", thorough_but(["lenet"], NETS))
def test_the_documents_are_those_of_the_callbacks(debug, channel, name, monkeypatch):
    expected = train(name)
    files = debug(level="L0", step=[1], dump_path=str(debug.path / "files"))
    assert train(name, files) == expected
    assert raw_files(debug.path) == []
    files.close()
    assert [path.name for path in (debug.path / "files").iterdir()] == ["step1"]
    assert channel.written > 0
    monkeypatch.undo()
    forget_graphs()
    assert train(name, debug(level="L0", step=[1])) == expected
    ours, callbacks = Dump(debug.path / "files" / "step1" / "rank"), debug.dump(1)
    assert set(ours.data) == set(callbacks.data)
    assert ours.construct == callbacks.construct
    repeated = [
        entry
        for entry in ours.data
        if entry.startswith(tuple(REPEATED.get(name, ["-"]))) and ".backw" in entry
    ]
    assert all(ours.data[entry][way] == [None] for entry in repeated for way in ("input", "output"))
    others = set(ours.data) - set(repeated)
    assert {entry: ours.data[entry] for entry in others} == {
        entry: callbacks.data[entry] for entry in others
    }


def test_the_window_opens_and_closes(debug, channel):
    expected = train("digits")
    debugger = debug(level="L0", step=[0, 2], task="tensor")
    assert train("digits", debugger) == expected
    assert sorted(path.name for path in debug.dump_path.glob("step*")) == ["step0", "step2"]
    for step in (0, 2):
        dump = debug.dump(step)
        saved = dump.data["Cell.out.Dense.forward.0"]["output"][0]
        assert abs(float(dump.array(saved["data_name"]).max()) - saved["Max"]) <= 1e-6 * abs(
            saved["Max"]
        )


def run_steps(debugger):
    net, step = build("digits")
    for i in range(3):
        debugger.start(net)
        step(i)
        debugger.stop()
        debugger.step()


def in_one_call(debugger):
    net, step = build("digits")
    debugger.start(net)
    for i in range(3):
        step(i)
    debugger.stop()
    debugger.step()


def test_several_runs_of_the_graph_in_one_call(debug, channel, monkeypatch):
    in_one_call(debug(level="L0", dump_path=str(debug.path / "files")))
    monkeypatch.undo()
    forget_graphs()
    in_one_call(debug(level="L0"))
    ours = Dump(debug.path / "files" / "step0" / "rank").data
    assert "Cell.out.Dense.backward.2" in ours
    assert ours == debug.dump(0).data


def test_files_that_arrive_after_the_graph_has_ended(debug, channel, monkeypatch):
    waits, original = [], dumped_files.wait_for_end

    def wait(folder, patience):
        waits.append(channel.written)
        channel.is_open.set()
        return original(folder, patience)

    monkeypatch.setattr(dumped_files, "wait_for_end", wait)
    debugger = debug(level="L0", step=[1])
    net, step = build("digits")
    for i in range(2):
        debugger.start(net)
        channel.is_open.clear()
        before = channel.written
        step(i)
        assert channel.written - before <= 1  # one may have been on its way
        debugger.step()
        channel.is_open.set()
    assert len(waits) >= 2
    assert "Cell.conv.Conv2d.backward.0" in debug.dump(1).data
    assert all(
        record["Max"] is not None
        for record in debug.dump(1).data["Cell.out.Dense.forward.0"]["output"]
    )


def errors_of(debug):
    """Return the text of the error logs, and remove them."""
    texts = []
    for path in debug.path.rglob("dump_error_info.log"):
        texts.append(path.read_text())
        path.unlink()
    return "\n".join(texts)


def test_files_that_get_lost_leave_null(debug, channel):
    channel.drops = lambda path: "conv.Conv2d.leave" in path and path.endswith(".0")
    run_steps(debug(level="L0", step=[1]))
    data = debug.dump(1).data
    lost = data["Cell.conv.Conv2d.forward.0"]["output"][0]
    assert lost["Max"] is None and lost["shape"][0] > 0
    assert data["Cell.conv.Conv2d.forward.0"]["input_args"][0]["Max"] is not None
    assert data["Cell.out.Dense.backward.0"]["input"][0]["Max"] is not None
    assert "a file of ops.TensorDump is missing" in errors_of(debug)


def test_files_that_never_arrive_are_named_and_the_training_goes_on(
    debug, channel, monkeypatch, caplog
):
    from probe.capture.graph.operators import FileOperators

    monkeypatch.setattr(FileOperators.__init__, "__defaults__", (0.3,))
    channel.drops = lambda path: ".end." in path  # the wait sees no end
    run_steps(debug(level="L0", step=[1]))
    assert "MS_DUMP_WAIT_TIME" in errors_of(debug)


def test_operators_that_this_device_lacks_harm_no_training(debug, monkeypatch, caplog):
    expected = train("digits")
    monkeypatch.setattr(
        compiled_graphs, "device_target", lambda: "Ascend"
    )  # and MindSpore's own operators
    assert train("digits", debug(level="L0")) == expected
    assert "could not be compiled with its Cells watched" in caplog.text
    assert "Unsupported op [TensorDump]" in errors_of(debug)
    assert not [name for path in debug.path.rglob("dump.json") for name in Dump(path.parent).data]


def test_gpu_is_refused(debug, monkeypatch):
    from probe import UsageError

    monkeypatch.setattr(compiled_graphs, "device_target", lambda: "GPU")
    with pytest.raises(UsageError, match="GRAPH_MODE is supported on CPU and Ascend"):
        debug(level="L0").start(build("digits")[0])

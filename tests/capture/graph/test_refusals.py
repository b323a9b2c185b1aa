# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Uses that GRAPH_MODE does not support end with an error that names those that it does, and harm no training."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

from probe import UsageError
from tests.support import compiled_nets
from tests.support.dumps import Dump

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("graph_mode"), pytest.mark.thorough]

X = Tensor(np.ones((2, 8), np.float32))


@pytest.mark.parametrize(
    "settings", [{"level": "L1"}, {"level": "mix"}, {"level": "L0", "task": "nan_check"}]
)
def test_levels_and_tasks_that_need_pynative(debug, settings):
    with pytest.raises(
        UsageError, match=r'GRAPH_MODE supports level "L0".*"level": "L0"|.*another task'
    ):
        debug(**settings).start(compiled_nets.Inner())
    assert compiled_nets.Inner()(X).shape == (2, 8)


def test_token_range_and_save(debug):
    with pytest.raises(UsageError, match="without token_range"):
        debug(level="L0").start(compiled_nets.Inner(), token_range=[0, 1])
    with pytest.raises(UsageError, match=r'GRAPH_MODE supports level "L0".*not level "debug"'):
        debug(level="debug").save(X, "x")


def test_a_start_after_the_compilation(debug):
    net = nn.SequentialCell(compiled_nets.Inner())
    expected = net(X).asnumpy()
    debugger = debug(level="L0")
    with pytest.raises(UsageError, match=r"compiled already.*before the first step"):
        debugger.start(net)
    debugger.step()
    assert np.array_equal(net(X).asnumpy(), expected)
    assert not list(debug.path.rglob("dump.json"))


def test_graphs_with_gradients_serve_a_dump_without_them(debug, tmp_path):
    net = nn.SequentialCell(compiled_nets.Inner())
    for modes, name in ((["all"], "all"), (["forward"], "forward")):
        debugger = debug(level="L0", data_mode=modes, dump_path=str(tmp_path / name))
        debugger.start(net)
        ms.grad(net)(X)
        debugger.stop()
        debugger.step()
        debugger.close()
    directions = {
        name: {"backward" in key for key in Dump(tmp_path / name / "step0" / "rank").data}
        for name in ("all", "forward")
    }
    assert directions == {"all": {True, False}, "forward": {False}}


def test_dynamic_shapes(debug):
    net = nn.SequentialCell(compiled_nets.Inner())
    net.set_inputs(Tensor(shape=[None, 8], dtype=ms.float32))
    with pytest.raises(UsageError, match=r"dynamic shapes \(set_inputs\)"):
        debug(level="L0").start(net)
    for size in (1, 2, 3):
        assert net(Tensor(np.ones((size, 8), np.float32))).shape == (size, 8)
    assert not list(debug.path.rglob("dump.json"))


def test_an_error_of_ours_before_a_compilation(debug, monkeypatch, caplog):
    from probe.capture.graph.compiled_graphs import Constructs

    net = nn.SequentialCell(compiled_nets.Inner(), compiled_nets.Inner())
    whole = Constructs._cell

    def broken(self, key, cell):
        if key.startswith("Cell.1."):
            raise ZeroDivisionError("broken")
        return whole(self, key, cell)

    monkeypatch.setattr(Constructs, "_cell", broken)
    debugger = debug(level="L0", step=[1])
    for _ in range(2):
        debugger.start(net)
        assert net(X).shape == (2, 8)
        debugger.step()
    assert "broken" in caplog.text and "no Cell of the model has reported" in caplog.text
    assert all("construct" not in vars(cell) for _, cell in net.cells_and_names())


def test_nothing_of_ours_stays(debug):
    net = nn.SequentialCell(compiled_nets.Inner())
    before = [dict(vars(cell)) for _, cell in net.cells_and_names()]
    debugger = debug(level="L0")
    debugger.start(net)
    assert [set(vars(cell)) for _, cell in net.cells_and_names()] == [
        set(names) for names in before
    ]
    net(X)
    debugger.stop()
    debugger.step()
    assert all("construct" not in vars(cell) for _, cell in net.cells_and_names())
    debugger.close()
    from probe.executor import HOMES

    compilers = [
        vars(module)["_CellGraphExecutor"]
        for module in map(__import__("sys").modules.get, HOMES)
        if module
    ]
    assert all(compiler.compile.__module__.startswith("mindspore") for compiler in compilers)
    assert all("around" not in compiler.compile.__qualname__ for compiler in compilers)


def test_scope_list_and_data_mode(debug):
    def names(**settings):
        net, step = compiled_nets.build("many")
        debugger = debug(level="L0", dump_path=str(debug.path / str(len(found))), **settings)
        debugger.start(net)
        step(0)
        debugger.step()
        from tests.support.dumps import Dump

        dump = Dump(debug.path / str(len(found)) / "step0" / "rank")
        found.append(dump)
        return dump

    found = []
    whole = names()
    assert set(names(list=["many.1"]).data) == {
        name for name in whole.data if "many.1" in name or "parameters_grad" in name
    }
    scoped = names(scope=["Cell.many.1.Inner.forward.0", "Cell.twice.Inner.forward.0"])
    assert [name for name in scoped.data if "many.0" in name or "backward" in name] == []
    assert "Cell.many.2.dense.Dense.forward.0" in scoped.data
    only = names(data_mode=["forward", "input"])
    assert all(
        set(entry) <= {"input_args", "input_kwargs"}
        for name, entry in only.data.items()
        if "forward" in name
    )
    assert not [name for name in only.data if "backward" in name]

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Level "debug": what save() is given, and the gradients that arrive there."""

from __future__ import annotations

import json

import mindspore as ms
import numpy as np
import pytest
from mindspore import ops

from probe import PrecisionDebugger, SettingsError, UsageError
from tests.support import interference, nets
from tests.support.tensors import tensor


def _data(debug, step=0):
    return json.loads((debug.dump_path / f"step{step}" / "rank" / "debug.json").read_text())


def test_values_of_every_kind_are_saved(debug):
    debugger = debug(level="debug")
    x = tensor([[1.0, -2.0], [3.0, 0.5]])
    debugger.save(x, "x")
    debugger.save({"a": x, "b": [x * 2, 3, "text"], "c": None}, "nest", save_backward=False)
    debugger.save(x + 1, "x")
    debugger.save(4, "number")
    debugger.step()
    document = _data(debug)
    assert (document["task"], document["level"], document["framework"]) == (
        "statistics",
        "debug",
        "mindspore",
    )
    data = document["data"]
    assert list(data) == [
        "x.0.debug",
        "x_grad.0.debug",
        "nest.0.debug",
        "x.1.debug",
        "x_grad.1.debug",
        "number.0.debug",
        "number_grad.0.debug",
    ]
    assert data["x.0.debug"]["Max"] == 3.0
    assert data["x.1.debug"]["Max"] == 4.0
    assert data["nest.0.debug"]["b"][0]["Min"] == -4.0
    assert data["nest.0.debug"]["b"][1:] == [
        {"type": "int", "value": 3},
        {"type": "str", "value": "text"},
    ]
    assert data["x_grad.0.debug"] is None
    assert data["number_grad.0.debug"] is None
    folder = debug.dump_path / "step0" / "rank"
    assert [path.name for path in folder.iterdir()] == ["debug.json"]


def test_numbers_of_saved_names_begin_again_in_each_step(debug):
    debugger = debug(level="debug", step=[1])
    for _ in range(2):
        debugger.save(1, "n", save_backward=False)
        debugger.save(2, "n", save_backward=False)
        debugger.step()
    assert list(_data(debug, 1)["data"]) == ["n.0.debug", "n.1.debug"]
    assert not (debug.dump_path / "step0").exists()


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_saved_gradients_are_those_of_the_training(debug, task):
    debugger = debug(level="debug", task=task)
    weight = ms.Parameter(tensor([1.5, -2.0, 0.25]), name="w")

    def forward(x):
        debugger.save(weight, "weight")
        debugger.save(x, "input")
        y = x * weight
        z = ops.exp(y)
        debugger.save({"y": y, "z": [z]}, "inside")
        return (y * z).sum()

    x = tensor([1.0, 2.0, -1.0])
    (gx, (gw,)) = ms.grad(forward, grad_position=0, weights=[weight])(x)
    debugger.step()
    assert not weight.hooks()
    data = _data(debug)["data"]
    y = x.asnumpy() * weight.asnumpy()
    expected = {"weight": gw.asnumpy(), "input": gx.asnumpy(), "z": y, "y": np.exp(y) * (1 + y)}
    found = {
        "weight": data["weight_grad.0.debug"],
        "input": data["input_grad.0.debug"],
        "y": data["inside_grad.0.debug"]["y"],
        "z": data["inside_grad.0.debug"]["z"][0],
    }
    for name, record in found.items():
        assert record["Max"] == pytest.approx(float(expected[name].max()), rel=1e-6), name
        assert record["Norm"] == pytest.approx(float(np.linalg.norm(expected[name])), rel=1e-6), (
            name
        )
        if task == "tensor":
            array = np.load(
                debug.dump_path / "step0/rank/dump_tensor_data" / record["data_name"],
                allow_pickle=False,
            )
            np.testing.assert_allclose(array, expected[name], rtol=1e-5)
    if task == "tensor":
        assert found["z"]["data_name"] == "inside_grad.0.debug.z.0.npy"


NETS = {
    **interference.NETS,
    **{name: lambda name=name: nets.build(name) for name in ("lenet", "digits")},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETS)
def test_saving_the_output_of_every_cell_changes_no_bit(debug, name):
    """Every result of every Cell is saved, with its gradient, by hooks that say so."""

    def train(save):
        net, step = NETS[name]()
        seen = []
        for cell in [cell for path, cell in net.cells_and_names() if path]:
            if save:
                cell.register_forward_hook(
                    lambda cell, inputs, output: save(output, type(cell).__name__) and None
                )
        for i in range(2):
            loss, gradients = step(i)
            if save:
                PrecisionDebugger.step()
            seen += [
                value.asnumpy().tobytes() for value in (loss, *gradients, *net.get_parameters())
            ]
        return seen

    bare, again = train(None), train(None)
    assert bare == again
    debugger = debug(level="debug")
    assert train(debugger.save) == bare
    for step in range(2):
        data = _data(debug, step)["data"]
        assert [name for name, value in data.items() if "_grad." not in name and value]
        assert [name for name, value in data.items() if "_grad." in name and value]


def test_save_is_ignored_at_other_levels(debug):
    debugger = debug(level="L1")
    debugger.save(tensor([1.0]), "x")
    debugger.step()
    assert not debug.dump_path.exists()


def test_save_needs_no_start_and_start_installs_nothing(debug):
    debugger = debug(level="debug")
    relu = ops.relu
    debugger.start()
    assert ops.relu is relu
    debugger.save(tensor([1.0]), "x", save_backward=False)
    debugger.stop()
    debugger.step()
    assert list(_data(debug)["data"]) == ["x.0.debug"]


@pytest.mark.parametrize("name", ["../../x", "=1+1", "a b"])
def test_a_saved_name_cannot_lead_out_of_the_folder(debug, name):
    debugger = debug(level="debug", task="tensor")
    debugger.save(tensor([1.0]), name, save_backward=False)
    debugger.step()
    (entry,) = _data(debug)["data"].values()
    path = debug.dump_path / "step0/rank/dump_tensor_data" / entry["data_name"]
    assert path.is_file()
    assert "/" not in entry["data_name"]


def test_wrong_arguments_are_named(debug):
    debugger = debug(level="debug")
    with pytest.raises(UsageError, match=r"save\(\): name 3"):
        debugger.save(tensor([1.0]), 3)
    with pytest.raises(UsageError, match=r"save\(\): save_backward 'yes'"):
        debugger.save(tensor([1.0]), "x", "yes")
    with pytest.raises(SettingsError, match=r"task: 'structure'"):
        debug(level="debug", task="structure")


def test_show_and_recover_read_debug_json(debug, capsys):
    from probe.__main__ import main

    debugger = debug(level="debug")
    debugger.save({"a": tensor([1.0, 5.0])}, "x", save_backward=False)
    debugger.save(7, "n", save_backward=False)
    journal = debug.dump_path / "step0/rank/dump.journal"
    kept = journal.read_bytes()
    debugger.step()
    document = debug.dump_path / "step0/rank/debug.json"
    before = document.read_text()
    document.unlink()
    journal.write_bytes(kept)  # as a process leaves it that was killed before step()
    assert main(["recover", str(debug.dump_path)]) == 0
    assert document.read_text() == before
    assert main(["show", str(debug.dump_path)]) == 0
    assert "x.0.debug.a" in capsys.readouterr().out


def test_names_that_are_equal_after_cleaning_are_numbered(debug):
    debugger = debug(level="debug")
    x = tensor([1.0])
    debugger.save(x, "a b", save_backward=False)
    debugger.save(x * 2, "a_b", save_backward=False)
    debugger.save(x, "w_grad", save_backward=False)
    debugger.save(x * 5, "w")
    debugger.step()
    data = _data(debug)["data"]
    assert [
        data[name]["Max"] for name in ("a_b.0.debug", "a_b.1.debug", "w_grad.0.debug", "w.1.debug")
    ] == [1, 2, 1, 5]
    assert data["w_grad.1.debug"] is None

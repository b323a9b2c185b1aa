# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Memory that no kernel writes is named, and has no numbers; the header tells the circumstances of the run."""

from __future__ import annotations

import json

import mindspore
import numpy as np
import pytest
from mindspore import Parameter, nn

import probe
from tests.support.tensors import tensor

CALL = "Primitive.bn_train.BatchNorm.0.forward"


def batch_norm(debug, values, **settings):
    normal = nn.BatchNorm2d(4)
    normal.set_train()
    debugger = debug(level="mix", **settings)
    debugger.start(nn.SequentialCell(normal))
    normal(tensor(values))
    debugger.stop()
    debugger.step()
    return debug.dump()


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("summary_mode", ["statistics", "md5"])
def test_outputs_of_batch_norm_that_its_kernel_does_not_write_have_no_numbers(
    debug, task, summary_mode
):
    dump = batch_norm(
        debug,
        np.random.default_rng(0).normal(size=(2, 4, 3, 3)),
        task=task,
        summary_mode=summary_mode,
    )
    first, *unwritten, mean, variance = dump.data[CALL]["output"]
    numbers = dict.fromkeys(("Max", "Min", "Mean", "Norm"))
    record = {
        "type": "mindspore.Tensor",
        "dtype": "Float32",
        "shape": [4],
        **numbers,
        "unwritten": True,
    }
    assert unwritten == [record, record]
    assert all(
        written["Norm"] > 0 and "unwritten" not in written for written in (first, mean, variance)
    )
    arrays = dump.folder / "dump_tensor_data"
    assert task == "statistics" or not {f"{CALL}.output.{i}.npy" for i in (1, 2)} & {
        p.name for p in arrays.iterdir()
    }


def test_the_header_tells_the_circumstances_of_the_run(debug):
    probe.seed_all(7)
    run = batch_norm(debug, np.ones((2, 4, 3, 3))).header["run"]
    assert run == {
        "tool": "probe",
        "format": 1,
        "world_size": 1,
        "rank": None,
        "device": "CPU",
        "versions": {
            "probe": probe.__version__,
            "mindspore": mindspore.__version__,
            "numpy": np.__version__,
        },
        "seed": 7,
        "deterministic": False,
    }
    assert not [
        text for text in json.dumps(run).split('"') if text[:1] in ("+", "-", "=", "%", "@")
    ]


def test_an_unchanged_lstm_agrees_with_itself(debug, tmp_path):
    """Two of its outputs are memory as it was."""
    net, x = nn.LSTM(4, 5), tensor(np.linspace(-1, 1, 24).reshape(3, 2, 4))
    debugger = debug(level="mix", summary_mode="md5")
    for value in (0.5, -3.0):
        kept = [tensor(np.full(size, value)) + 0 for size in (5, 8, 20, 64, 256, 1024)]
        debugger.start(nn.SequentialCell(net))
        del kept
        net(x)
        debugger.stop()
        debugger.step()
    data = [debug.dump(step=step).data for step in (0, 1)]
    (name,) = [name for name in data[0] if name.endswith("LSTM.0.forward")]
    assert data[0][name]["output"] == data[1][name]["output"]
    assert [record.get("unwritten") for record in data[0][name]["output"]] == [None] * 3 + [
        True
    ] * 2


class Model(nn.Cell):
    def __init__(self):
        super().__init__()
        self.token = Parameter(tensor(np.ones(4)), name="token")
        self.norm = nn.LayerNorm((4,), epsilon=1e-3)

    def construct(self, x):
        return self.norm(x + self.token)


def test_attributes_of_primitives_and_parameters_of_the_model_are_recorded(debug):
    net, debugger = Model(), debug(level="mix")
    debugger.start(net)
    net(tensor(np.eye(4)))
    net(tensor(np.eye(4)))
    debugger.stop()
    debugger.step()
    data = debug.dump().data
    attributes = data["Primitive.layer_norm.LayerNorm.0.forward"]["attributes"]
    assert attributes["epsilon"] == {"type": "float", "value": 1e-3}
    assert data["Tensor.__add__.0.forward"]["model_parameters"]["token"]["Norm"] == 2.0
    assert [name for name, entry in data.items() if "model_parameters" in entry] == [
        "Tensor.__add__.0.forward"
    ]


class Odd(mindspore.ops.ReLU):
    """A user's Primitive that calls something else its attributes."""

    @property
    def attrs(self):
        raise KeyError("mine")

    @attrs.setter
    def attrs(self, value):
        """MindSpore's constructor sets it."""


def test_a_primitive_whose_attributes_raise_harms_no_training(debug):
    model = nn.SequentialCell(nn.ReLU())
    model[0].relu = Odd()
    x = tensor([-1.0, 2.0])
    debugger = debug(level="mix")
    debugger.start(model)
    assert model(x).asnumpy().tolist() == [0.0, 2.0]
    debugger.step()
    assert debug.dump().names("Odd.0.forward")
    for log in debug.path.rglob("dump_error_info.log"):
        log.unlink()  # an error of the user's class, which is told

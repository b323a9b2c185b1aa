# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Memory that no kernel writes is named, and has no numbers; the header tells the circumstances of the run."""

from __future__ import annotations

import json

import mindspore
import numpy as np
import pytest
from mindspore import nn

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
def test_outputs_of_batch_norm_that_its_kernel_does_not_write_have_no_numbers(debug, task, summary_mode):
    dump = batch_norm(debug, np.random.default_rng(0).normal(size=(2, 4, 3, 3)), task=task, summary_mode=summary_mode)
    first, *unwritten, mean, variance = dump.data[CALL]["output"]
    numbers = dict.fromkeys(("Max", "Min", "Mean", "Norm"))
    record = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [4], **numbers, "unwritten": True}
    assert unwritten == [record, record]
    assert all(written["Norm"] > 0 and "unwritten" not in written for written in (first, mean, variance))
    arrays = dump.folder / "dump_tensor_data"
    assert task == "statistics" or not {f"{CALL}.output.{i}.npy" for i in (1, 2)} & {p.name for p in arrays.iterdir()}


def test_the_header_tells_the_circumstances_of_the_run(debug):
    probe.seed_all(7)
    run = batch_norm(debug, np.ones((2, 4, 3, 3))).header["run"]
    assert run == {
        "tool": "probe",
        "format": 1,
        "world_size": 1,
        "rank": None,
        "device": "CPU",
        "versions": {"probe": probe.__version__, "mindspore": mindspore.__version__, "numpy": np.__version__},
        "seed": 7,
        "deterministic": False,
    }
    assert not [text for text in json.dumps(run).split('"') if text[:1] in ("+", "-", "=", "%", "@")]

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""async_dump: tensors are copied, and read later."""

from __future__ import annotations

import json

import mindspore as ms
import numpy as np
import pytest

from probe import SettingsError
from tests.support import nets

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_async_dump_records_the_same_numbers(debug, task, tmp_path):
    def run(path, **settings):
        ms.set_seed(1)
        net, train = nets.build(
            "lenet"
        )  # no BatchNorm: its kernel leaves two of its outputs unwritten
        debugger = debug(task=task, level="mix", dump_path=str(tmp_path / path), **settings)
        debugger.start(net)
        loss, _ = train(0)
        debugger.step()
        debugger._session.close()
        folder = tmp_path / path / "step0" / "rank"
        files = sorted(item.name for item in folder.rglob("*.npy"))
        arrays = [np.load(folder / "dump_tensor_data" / name).tobytes() for name in files]
        data = json.loads(
            (folder / "dump.json").read_text(), parse_float=lambda text: f"{float(text):.5e}"
        )["data"]
        return list(data), data, files, arrays, loss.asnumpy().tobytes()

    later, now = run("later", async_dump=True), run("now")
    assert later == now  # numbers to six digits: a copy may lie in memory in another order


def test_async_dump_is_refused_with_md5(debug):
    with pytest.raises(SettingsError, match=r'async_dump: True.*summary_mode is or has "md5"'):
        debug(async_dump=True, summary_mode="md5")

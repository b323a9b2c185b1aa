# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Task tensor writes equal bytes once; every name, and everything in the files, stays."""

from __future__ import annotations

import json
import os
import re
import tarfile

import numpy as np
import pytest

from tests.support.nets import build

pytestmark = pytest.mark.slow


def arrays_of(debug, folder, **settings):
    """Record one step of the GPT; return the folder of its arrays."""
    net, train = build("gpt")
    debugger = debug(level="mix", task="tensor", dump_path=str(folder), **settings)
    debugger.start(net)
    train(0)
    debugger.stop()
    debugger.step()
    return folder / "step0" / "rank" / "dump_tensor_data"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def bytes_on_disk(folder):
    return sum(
        {status.st_ino: status.st_size for status in map(os.stat, folder.iterdir())}.values()
    )


def test_files_are_the_same_with_and_without_links(debug, tmp_path):
    linked, written = (
        arrays_of(debug, tmp_path / str(link), link_equal=link) for link in (True, False)
    )
    assert contents(linked) == contents(written)
    assert bytes_on_disk(linked) < 0.5 * bytes_on_disk(written)
    assert bytes_on_disk(written) == sum(map(len, contents(written).values()))


@pytest.mark.parametrize("net", ["gpt", "lenet"])
def test_records_have_the_numbers_of_task_statistics(debug, tmp_path, net):
    found = []
    for task in ("statistics", "tensor"):
        model, train = build(net)
        debugger = debug(level="mix", task=task, dump_path=str(tmp_path / task))
        debugger.start(model)
        train(0)
        debugger.stop()
        debugger.step()
        text = (tmp_path / task / "step0" / "rank" / "dump.json").read_text()
        found.append(json.loads(re.sub(r',\s*"data_name": "[^"]*"', "", text))["data"])
    assert found[0] == found[1]


def test_a_dump_survives_tar(debug, tmp_path):
    folder = arrays_of(debug, tmp_path / "dump")
    with tarfile.open(tmp_path / "dump.tar", "w") as archive:
        archive.add(folder, "arrays")
    assert (tmp_path / "dump.tar").stat().st_size < 0.7 * sum(map(len, contents(folder).values()))
    with tarfile.open(tmp_path / "dump.tar") as archive:
        archive.extractall(tmp_path)
    assert contents(tmp_path / "arrays") == contents(folder)
    assert all(np.load(path) is not None for path in (tmp_path / "arrays").iterdir())

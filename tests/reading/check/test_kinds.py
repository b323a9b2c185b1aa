# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The form of a checkpoint by its content, and runs of which something is unknown."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

import probe
from probe import UsageError
from probe.__main__ import main
from tests.reading.check import checkpoints
from tests.reading.check.snapshots import pair

WEIGHTS = {
    "fc.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "fc.bias": np.ones(2, np.float32),
}
WRITERS = {
    "ckpt": checkpoints.write_ckpt,
    "safetensors": checkpoints.write_safetensors,
    "npz": checkpoints.write_npz,
    "torch": checkpoints.write_torch,
}


@pytest.mark.parametrize("name", ["x.pth.tar", "x.ckpt", "x.bin", "x.weights", "x"])
@pytest.mark.parametrize("form", list(WRITERS))
def test_the_content_decides_and_not_the_ending(tmp_path, form, name):
    made = tmp_path / ("made.npz" if form == "npz" else "made")
    WRITERS[form](made, WEIGHTS)
    made.rename(tmp_path / name)
    checkpoints.write_ckpt(tmp_path / "golden.ckpt", WEIGHTS)
    assert probe.check(tmp_path / "golden.ckpt", tmp_path / name).ok


def test_storages_of_torch_1_6_are_named_by_addresses(tmp_path):
    checkpoints.write_torch(tmp_path / "number.pth", {"fc.weight": WEIGHTS["fc.weight"]})
    with zipfile.ZipFile(tmp_path / "number.pth") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    address = b"94340341289312"
    with zipfile.ZipFile(tmp_path / "address.pth", "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            if name.endswith("data.pkl"):
                assert content.count(b"X\x01\x00\x00\x000") == 1
            changed = content.replace(
                b"X\x01\x00\x00\x000", b"X" + len(address).to_bytes(4, "little") + address
            )
            archive.writestr(name.replace("data/0", f"data/{address.decode()}"), changed)
    assert probe.check(tmp_path / "number.pth", tmp_path / "address.pth").ok


def test_programs_of_torchscript_and_models_of_onnx_are_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.pt", "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02N.")
        archive.writestr("x/code/__torch__.py", "class M: pass")
        archive.writestr("x/constants.pkl", b"\x80\x02).")
    with pytest.raises(UsageError, match="TorchScript"):
        probe.check(tmp_path / "x.pt", tmp_path / "x.pt")
    (tmp_path / "x.onnx").write_bytes(b"\x08\x08\x12\x07pytorch")
    with pytest.raises(UsageError, match="ONNX"):
        probe.check(tmp_path / "x.onnx", tmp_path / "x.onnx")


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        probe.check(tmp_path / "x.ckpt", tmp_path / "x.ckpt")


def _without_parameters(content):
    content["parameters"] = {}


def _with_a_wrong_crc(content):
    next(iter(content["parameters"].values()))["values"]["crc"] = []


@pytest.mark.parametrize("change", [_without_parameters, _with_a_wrong_crc])
def test_runs_that_are_not_known_are_never_the_same_experiment(tmp_path, capsys, change):
    paths = pair(tmp_path)
    for path in paths:
        for file in path.rglob("run.json"):
            content = json.loads(file.read_text())
            change(content)
            file.write_text(json.dumps(content))
    main(["check", *map(str, paths)])
    said = capsys.readouterr().out
    assert "the same experiment" not in said
    assert "no difference in what is known" in said


def test_runs_without_batches_are_never_the_same_experiment(tmp_path, capsys):
    paths = pair(tmp_path)
    for path in paths:
        for file in path.rglob("run.jsonl"):
            file.write_text("")
    main(["check", *map(str, paths)])
    assert "the same experiment" not in capsys.readouterr().out

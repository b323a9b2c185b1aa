# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - the answers have Chinese punctuation
"""probe check of two checkpoints: each planted difference is named."""

from __future__ import annotations

import itertools
import json
import os
import random
import sys

import ml_dtypes
import numpy as np
import pytest

import probe
from probe.__main__ import main
from tests.reading.check import checkpoints
from tests.reading.check.checkpoints import WRITERS, write_ckpt, write_safetensors
from tests.reading.check.snapshots import Experiment, arrays
from tests.reading.dumps.torch import archives
from tests.support import processes
from tests.support.chinese import english_left
from tests.support.paths import ROOT


def model():
    """Return the parameters of a model; an embedding and four blocks."""
    rng = np.random.RandomState(4)
    return {"embedding": rng.randn(20, 8).astype(np.float32), **arrays()}


def saved(
    folder, change=lambda weights: None, writer=write_ckpt, name="mine.ckpt", golden="golden.ckpt"
):
    weights = model()
    write_ckpt(folder / golden, weights)
    made = change(weights)
    writer(folder / name, weights if made is None else made)
    return folder / golden, folder / name


@pytest.mark.parametrize("name", WRITERS)
def test_every_form_has_the_same_weights(tmp_path, name):
    paths = saved(tmp_path, writer=WRITERS[name], name=name)
    result = probe.check(*paths)
    assert result.ok, result
    assert "all 14 parameters have equal bytes" in str(result)


def one_element(weights):
    weights["blocks.2.fc.weight"][3, 5] += 0.5


def exchanged(weights):
    one, two = "blocks.0.fc.weight", "blocks.3.fc.weight"
    weights[one], weights[two] = weights[two], weights[one]


def transposed(weights):
    weights["head.weight"] = np.ascontiguousarray(weights["head.weight"].T)


def transposed_square(weights):
    weights["blocks.1.fc.weight"] = np.ascontiguousarray(weights["blocks.1.fc.weight"].T)


def permuted_rows(weights):
    weights["embedding"] = weights["embedding"][::-1].copy()


def prefix(weights):
    return {f"net.{name}": array for name, array in weights.items()}


def more_rows(weights):
    weights["embedding"] = np.concatenate([weights["embedding"], np.ones((3, 8), np.float32)])


def half(weights):
    return {name: array.astype(ml_dtypes.bfloat16) for name, array in weights.items()}


def rounded_otherwise(weights):
    made = half(weights)
    made["head.weight"][0, 0] += 1
    return made


def missing(weights):
    del weights["blocks.3.fc.bias"]


def extra(weights):
    weights["head.bias"] = np.zeros(4, np.float32)


def not_a_number(weights):
    weights["head.weight"][1, 2] = np.nan


def other_zero(weights):
    weights["blocks.0.fc.bias"][2] = -0.0


def reshaped(weights):
    weights["head.weight"] = weights["head.weight"].reshape(8, 4)


PLANTED = [
    (one_element, "blocks.2.fc.weight: 1 of 64 elements differs, first [3, 5]:"),
    (exchanged, "exchanged: in B blocks.0.fc.weight has the values of blocks.3.fc.weight"),
    (transposed, "head.weight: transposed (4x8 / 8x4)"),
    (transposed_square, "blocks.1.fc.weight: transposed"),
    (permuted_rows, "embedding: rows in another order: row 0 of A is row 19 of B"),
    (prefix, 'names: 14 names have the prefix "net." in B'),
    (more_rows, "embedding: shape 20x8 / 23x8: B has 3 rows more, the first 20 agree"),
    (
        half,
        "dtype: 14 of 14 have another dtype, first embedding: Float32 / BFloat16; the values agree after rounding",
    ),
    (rounded_otherwise, "head.weight: 32 of 32 elements differ"),
    (missing, "parameters: only in A: blocks.3.fc.bias"),
    (extra, "parameters: only in B: head.bias"),
    (not_a_number, "head.weight: 1 of 32 elements differs, first [1, 2]:"),
    (other_zero, "blocks.0.fc.bias: equal numbers of other bits"),
    (reshaped, "head.weight: the same elements in another shape (4x8 / 8x4)"),
]


@pytest.mark.parametrize(("change", "words"), PLANTED, ids=[it[0].__name__ for it in PLANTED])
@pytest.mark.parametrize("form", ["ckpt", "safetensors"])
def test_a_planted_difference_is_named(tmp_path, change, words, form):
    writer = {"ckpt": write_ckpt, "safetensors": write_safetensors}[form]
    result = probe.check(*saved(tmp_path, change, writer, f"mine.{form}"))
    assert any(line.startswith(words) for line in result.lines()), result
    assert len(result.lines()) == (2 if change is rounded_otherwise else 1)


@pytest.mark.parametrize(
    "change", [it[0] for it in PLANTED], ids=[it[0].__name__ for it in PLANTED]
)
def test_a_planted_difference_is_told_in_chinese(tmp_path, change, capsys):
    paths = list(map(str, saved(tmp_path, change)))
    assert main(["check", *paths, "--lang", "zh"]) == 1
    said = capsys.readouterr().out
    assert len(said.splitlines()) > 2
    assert english_left(said, *paths) == []
    assert main(["check", paths[1], "--lang", "zh"]) == 0
    assert english_left(capsys.readouterr().out, *paths) == []


def test_equal_weights_many_differences_and_remarks_are_told_in_chinese(tmp_path):
    weights = {f"layers.{n}.w": np.full((2, 2), n, np.float32) for n in range(60)}
    states = {
        f"{kind}.{name}": array
        for kind in ("moment1", "optimizer")
        for name, array in weights.items()
    }
    write_ckpt(tmp_path / "a.ckpt", {**weights, **states})
    write_ckpt(tmp_path / "b.ckpt", {name: array + 0.5 for name, array in weights.items()})
    said = probe.check(tmp_path / "a.ckpt", tmp_path / "b.ckpt").text("zh")
    assert "参数：另外 42 个不同" in said
    assert "60 个参数的 moment1，60 个张量" in said
    assert english_left(said, tmp_path) == []
    equal = probe.check(tmp_path / "a.ckpt", tmp_path / "a.ckpt").text("zh")
    assert "全部 180 个参数逐字节一致" in equal
    it = Experiment(tmp_path / "run")
    write_ckpt(tmp_path / "c.ckpt", {name: item[0] + 1 for name, item in it.parameters.items()})
    assert "运行只保存了校验和" in probe.check(it.write(), tmp_path / "c.ckpt").text("zh")


@pytest.mark.parametrize(("side", "planted"), [("A", False), ("B", True)])
def test_missing_states_of_the_optimizer_are_told_apart_from_parameters(tmp_path, side, planted):
    def states(weights):
        return {
            f"{kind}.{name}": array
            for kind in ("moment1", "moment2")
            for name, array in weights.items()
        }

    full = {**model(), **states(model()), "global_step": np.ones(1, np.int32)}
    write_ckpt(tmp_path / "full.ckpt", full)
    write_ckpt(tmp_path / "plain.ckpt", model())
    names = ["plain.ckpt", "full.ckpt"] if planted else ["full.ckpt", "plain.ckpt"]
    said = f"optimizer state: only in {side}: moment1 of 14 parameters, moment2 of 14 parameters, global_step"
    assert probe.check(*(tmp_path / name for name in names)).lines() == [said]


def test_a_checkpoint_is_compared_with_a_run(tmp_path):
    it = Experiment(tmp_path / "run")
    folder = it.write()
    weights = {name: item[0] for name, item in it.parameters.items()}
    write_ckpt(tmp_path / "same.ckpt", weights)
    assert probe.check(tmp_path / "same.ckpt", folder).ok
    weights["head.weight"] = weights["head.weight"] + 1
    write_safetensors(tmp_path / "other.safetensors", weights)
    assert probe.check(folder, tmp_path / "other.safetensors").lines() == [
        "head.weight: other values (Float32 4x8); a run has checksums only"
    ]


def test_a_scalar_and_an_empty_parameter_are_read(tmp_path):
    weights = {
        "scale": np.float32(3).reshape(()),
        "none": np.zeros((0, 4), np.float32),
        "step": np.ones(1, np.int64),
    }
    paths = saved(tmp_path, lambda _: weights)
    write_safetensors(tmp_path / "golden.safetensors", weights)
    assert probe.check(tmp_path / "golden.safetensors", paths[1]).ok


def test_a_transposed_view_of_torch_is_read_in_its_order(tmp_path):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    archives.write(tmp_path / "view.pt", archives.tensor((3, 2), (1, 3)), array.tobytes())
    write_ckpt(tmp_path / "plain.ckpt", {"tensor": np.ascontiguousarray(array.T)})
    assert probe.check(tmp_path / "view.pt", tmp_path / "plain.ckpt").ok


def test_fortran_order_in_an_npz_is_read_in_its_order(tmp_path):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez(tmp_path / "a.npz", w=np.asfortranarray(array))
    np.savez(tmp_path / "b.npz", w=array)
    assert probe.check(tmp_path / "a.npz", tmp_path / "b.npz").ok


def test_the_reader_of_torch_executes_nothing(tmp_path, capsys):
    mark = tmp_path / "executed"
    call = archives.name("os", "system") + archives.text(f"touch {mark}") + b"\x85R"
    tensor = archives.text("w") + archives.tensor()
    for place, body in enumerate(
        [b"}(" + archives.text("x") + call + tensor + b"u", call, b"(" + call + b"t"]
    ):
        path = tmp_path / f"{place}.pt"
        archives.write(path, body, bytes(24))
        assert main(["check", str(path)]) == (0 if not place else 2)
    assert not mark.exists()
    assert "holds no tensors" in capsys.readouterr().err


def test_a_dict_that_holds_itself_is_looked_into_once(tmp_path):
    itself = b"".join(archives.text(f"k{n}") + b"h\x00" for n in range(40))
    archives.write(
        tmp_path / "a.pt",
        b"}q\x00(" + itself + archives.text("w") + archives.tensor() + b"u",
        bytes(24),
    )
    write_ckpt(tmp_path / "b.ckpt", {"w": np.zeros((2, 3), np.float32)})
    assert probe.check(tmp_path / "a.pt", tmp_path / "b.ckpt").ok


def test_objects_of_python_in_an_npz_are_refused(tmp_path, capsys):
    np.savez(tmp_path / "a.npz", w=np.array([{}], dtype=object))
    assert main(["check", str(tmp_path / "a.npz")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("name", WRITERS)
def test_a_cut_or_damaged_file_is_one_clear_line(tmp_path, capsys, name):
    golden, path = saved(tmp_path, writer=WRITERS[name], name=name)
    whole = path.read_bytes()
    rng = random.Random(name)
    cuts = [whole[: rng.randrange(len(whole))] for _ in range(15)]
    flips = [
        bytes(b ^ (1 << rng.randrange(8)) if n == at else b for n, b in enumerate(whole))
        for at in (rng.randrange(len(whole)) for _ in range(15))
    ]
    others = [
        b"",
        b"\x00" * 99,
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\xff" * 64,
        whole[:40] * 3,
    ]
    for content in itertools.chain(cuts, flips, others):
        path.write_bytes(content)
        status = main(["check", str(golden), str(path)])
        said = capsys.readouterr()
        assert (status == 2 and len(said.err.splitlines()) == 1) or (
            status in (0, 1) and not said.err
        ), said


def test_a_shape_that_promises_more_than_the_file_has_is_refused(tmp_path, capsys):
    huge = json.dumps(
        {"w": {"dtype": "F32", "shape": [1 << 40, 1 << 20], "data_offsets": [0, 1 << 62]}}
    ).encode()
    (tmp_path / "a.safetensors").write_bytes(len(huge).to_bytes(8, "little") + huge)
    assert main(["check", str(tmp_path / "a.safetensors")]) == 2
    assert "a.safetensors" in capsys.readouterr().err


MEMORY = """
import re, sys, probe
result = probe.check(*sys.argv[1:])
memory = re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]
print(len(result.lines()), result.lines()[0], memory, sep="|")
"""


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [256, pytest.param(2048, marks=pytest.mark.thorough)])
def test_a_large_checkpoint_needs_little_memory(tmp_path, megabytes):
    block = np.random.RandomState(0).bytes(1 << 20)
    for name, last in (("a.ckpt", b"\x00\x00\x80\x3f"), ("b.ckpt", b"\x00\x00\x00\x40")):
        with open(tmp_path / name, "wb") as file:
            for layer in range(4):
                size = megabytes // 4 << 20
                tensor = b"\x08" + checkpoints.varint(size // 4) + checkpoints.field(2, b"Float32")
                tensor += b"\x1a" + checkpoints.varint(size)
                value = (
                    checkpoints.field(1, f"layers.{layer}.w".encode())
                    + b"\x12"
                    + checkpoints.varint(len(tensor) + size)
                )
                value += tensor
                file.write(b"\x0a" + checkpoints.varint(len(value) + size) + value)
                for part in range(megabytes // 4):
                    file.write(
                        block if (layer, part) != (3, megabytes // 4 - 1) else block[:-4] + last
                    )
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "a.ckpt"), str(tmp_path / "b.ckpt")]
    done = processes.run(
        command,
        fresh="memory is measured",
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    for path in tmp_path.glob("*.ckpt"):
        path.unlink()  # pytest would keep gigabytes until it runs again
    lines, first, memory = done.stdout.strip().split("|")
    assert lines == "1"
    assert first.startswith(f"layers.3.w: 1 of {megabytes << 16} elements differs")
    assert int(memory) < 300_000

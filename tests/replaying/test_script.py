# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe replay --script``: programs that need MindSpore and numpy alone, and give the same verdict."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, mint, nn, ops

import probe
from probe.__main__ import main
from tests.support import processes

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

#: call -> whether its first recorded output is changed
CALLS = {
    "Functional.softmax.0.forward": False, "Functional.gelu.0.forward": True, "Functional.concat.0.forward": False,
    "Functional.tanh.0.forward": False, "Functional.softmax.0.backward": True, "Functional.gelu.0.backward": False,
    "Mint.matmul.0.forward": False, "Mint.exp.0.forward": True, "Mint.matmul.0.backward": False,
    "MintFunctional.silu.0.forward": False, "MintFunctional.silu.0.backward": True,
    "Tensor.__getitem__.0.forward": False, "Tensor.mean.0.forward": True, "Tensor.transpose.0.forward": True,
    "Tensor.max.0.backward": False, "Primitive.conv2d.Conv2D.0.forward": False,
    "Primitive.conv2d.Conv2D.0.backward": True, "Primitive.bn_train.BatchNorm.0.forward": False,
    "Primitive.max_pool.MaxPool.0.backward": False, "Primitive.fn:run.LayerNorm.0.forward": True,
    "Primitive.fn:run.LayerNorm.0.backward": False, "Primitive.fn:run.Pow.0.forward": False,
}  # fmt: skip

#: runs programs one after the other, in an interpreter that has the packages of one folder alone
DRIVER = """
import runpy, sys
sys.path.append(sys.argv[1])
for script in sys.argv[2:]:
    print("script", script)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        print("status", end.code)
print("modules of others:", [name for name in sys.modules if name.partition(".")[0] in ("probe", "ml_dtypes", "yaml")])
"""


def train():
    """Return a network, and a function that makes calls of many kinds forward and backward."""
    rng = np.random.RandomState(0)

    def draw(*shape):
        return Tensor(rng.randn(*shape).astype(np.float32))

    net = nn.SequentialCell(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    net.set_train()
    images, weight, wide, half = (
        draw(2, 3, 8, 8),
        draw(64, 5),
        draw(4, 16),
        draw(4, 16).astype(ms.float16),
    )
    rows, scale, shift = draw(2, 64), draw(16), draw(16)

    def run(images, weight, wide, half):
        chances = ops.softmax(mint.matmul(rows, weight), -1)
        normed = ops.LayerNorm(begin_norm_axis=1, begin_params_axis=1)(wide, scale, shift)[0]
        both = ops.concat([wide, mint.nn.functional.silu(wide) + ops.gelu(normed)], 1)
        parts = (
            both.reshape(8, 16).transpose(1, 0).mean()
            + mint.exp(wide)[1:, 2].sum()
            + ops.tanh(half).sum()
        )
        return net(images).sum() + (chances * chances).sum() + parts + ops.Pow()(wide, 2.0).max()

    gradient = ms.value_and_grad(run, (0, 1, 2, 3), net.trainable_params())
    return net, lambda: gradient(images, weight, wide, half)


def packages(folder):
    """Fill a folder with links to MindSpore, numpy, and the packages that they need; return it."""
    folder.mkdir()
    wanted, seen = ["mindspore", "numpy"], set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        installed = metadata.distribution(name)
        needed = [text for text in installed.requires or [] if "extra ==" not in text]
        wanted += [re.match(r"[\w.-]+", text)[0] for text in needed]
        for top in {file.parts[0] for file in installed.files} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(installed.locate_file(top)))
    return folder


def test_scripts_run_with_mindspore_and_numpy_alone_and_have_the_same_verdict(debug, tmp_path):
    net, step = train()
    _, dump = debug.record(step, net, level="mix", task="tensor")
    for name in [name for name, is_changed in CALLS.items() if is_changed]:
        (path, *_) = sorted(dump.folder.glob(f"dump_tensor_data/{name}.output.*.npy"))
        values = np.load(path)
        path.unlink()  # equal arrays share one file
        np.save(path, (values * 1.01).astype(values.dtype))
    expected, scripts = {call.name: call for call in probe.replay(debug.dump_path, jobs=1)}, {}
    for number, name in enumerate(CALLS):
        scripts[name] = tmp_path / f"script{number}.py"
        assert main(["replay", str(debug.dump_path), name, "--script", str(scripts[name])]) == 0
    assert {name: expected[name].verdict for name in CALLS} == {
        name: "wrong" if is_changed else "ok" for name, is_changed in CALLS.items()
    }
    done = processes.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            DRIVER,
            str(packages(tmp_path / "packages")),
            *map(str, scripts.values()),
        ],
        fresh="it has other packages",
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
    )
    assert "modules of others: []" in done.stdout, done.stderr
    said = dict(part.split("\n", 1) for part in done.stdout.split("script ")[1:])
    for name, script in scripts.items():
        call, lines = expected[name], said[str(script)].splitlines()
        assert f"verdict: {call.verdict}" in lines, said[str(script)]
        assert f"status {int(call.verdict != 'ok')}" in lines
        assert f"golden: {call.golden}" in lines
        for item in call.outputs:
            start = (
                f"{item.place}: recorded {item.off:.1e} off, here {item.here:.1e}: {item.verdict}"
            )
            assert any(line.startswith(start) for line in lines), (start, lines)

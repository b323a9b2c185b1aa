# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes the dumps and files that are changed: one of every kind, each recorded once.

python -m tests.programs.fuzz.seeds FOLDER
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

#: kind of a dump -> its settings
TASKS = {
    "statistics": {"level": "mix"},
    "tensor": {"task": "tensor", "level": "L1"},
    "md5": {"level": "mix", "statistics": {"summary_mode": "md5"}},
    "nan_check": {"task": "nan_check"},
    "debug": {"level": "debug"},
    "monitor": {"task": "monitor"},
}
LAYOUTS = ("cpu", "ascend_o1", "ascend_statistics", "ascend_o2")


def record(folder: Path) -> None:
    """Record each kind in this process."""
    import mindspore as ms
    from mindspore import Tensor, nn

    from probe import PrecisionDebugger

    ms.set_device("CPU")
    for kind, settings in TASKS.items():
        ms.set_seed(1)
        config = folder / f"{kind}.settings.json"
        config.write_text(json.dumps({"dump_path": str(folder / kind), **settings}))
        debugger = PrecisionDebugger(config_path=str(config))
        net = nn.SequentialCell(nn.Dense(3, 2), nn.ReLU())
        optimizer = nn.SGD(net.trainable_params(), 0.1)
        gradient = ms.value_and_grad(
            lambda x, net=net: net(x * x).sum(1, True).sum(), None, optimizer.parameters
        )
        x = Tensor(np.full((2, 3), 1e20 if kind == "nan_check" else 1, np.float32))
        for _ in range(2):
            debugger.start(net)
            optimizer(gradient(x)[1])
            if kind == "debug":
                debugger.save({"x": x, "n": 3}, "mine")
            debugger.stop()
            debugger.step()
        PrecisionDebugger.close()
        config.unlink()


def add_others(folder: Path) -> None:
    """Make the kinds that need no training: kernels, a journal, checkpoints."""
    from probe.series.msprobe_csv import write_msprobe_csv
    from probe.series.series import open_series
    from probe.store.journal import Journal
    from tests.reading.check import checkpoints
    from tests.reading.dumps.kernels import layouts

    for name in LAYOUTS:
        getattr(layouts, name)(folder / f"kernels_{name}")
    document = json.loads((folder / "statistics/step0/rank/dump.json").read_text())
    data = document.pop("data")
    journal = Journal(
        str(folder / "journal/step0/rank"), json.dumps({"header": document, "extra_info": True})
    )
    for number, (name, entry) in enumerate(data.items()):
        around = {"stack": number, "lines": ["File a.py, line 1"], "construct": {name: None}}
        journal.append(json.dumps({"name": name, "entry": entry, **around}))
    journal.close()
    for rank in ("rank0", "rank1"):
        shutil.copytree(folder / "statistics/step0/rank", folder / "ranks/step0" / rank)
        (folder / "ranks/step0" / rank / "run.json").unlink()
    for rank in open_series(str(folder / "monitor")):
        write_msprobe_csv([rank], str(folder / "csv"))
    files = folder / "checkpoints"
    files.mkdir()
    weights = {
        "a.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b.bias": np.ones(2, np.float16),
    }
    checkpoints.write_ckpt(files / "x.ckpt", weights)
    checkpoints.write_safetensors(files / "x.safetensors", weights)
    checkpoints.write_npz(files / "x.npz", weights)
    checkpoints.write_torch(files / "x.pt", weights)


def make(folder: Path) -> Path:
    """Make all seeds, unless they are there."""
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        subprocess.run(
            [sys.executable, "-m", __name__, str(folder)], check=True, capture_output=True
        )
        (folder / "ready").touch()
    return folder


if __name__ == "__main__":
    record(Path(sys.argv[1]))
    add_others(Path(sys.argv[1]))

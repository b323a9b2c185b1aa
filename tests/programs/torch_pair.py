# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The same programs under PyTorch, recorded by msprobe, and on MindSpore, recorded by probe: compare names the faults.

    python -m tests.programs.torch_pair --pytorch PYTHON --torch PYTHON [--models llama,bert]

Both sides have the same weights and the same batch, and make one training step. A healthy pair has no origin; a fault
that is planted on the side of MindSpore is named first, with the module that it is in. ``make torch-pair`` runs all.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np

#: fault -> the function that plants it; it returns the path of the module
FAULTS = ("scaled", "shifted")
LEAST_PAIRED = 0.99
#: model -> the module where mindtorch 0.5.1 differs from PyTorch itself: `.to(device)` ends the gradient of positions
KNOWN = {"gpt2": "transformer.wpe"}


def fill(model, make):
    """Give each parameter values that follow from its name."""
    for name, parameter in model.named_parameters():
        shape = tuple(parameter.shape)
        count = int(np.prod(shape))
        wave = np.sin(np.arange(count) * 0.7 + zlib.crc32(name.encode()) % 100)
        is_scale = len(shape) == 1 and name.endswith("weight")
        values = 1 + 0.1 * wave if is_scale else 0.1 * wave
        parameter.data = make(values.astype(np.float32).reshape(shape))


def plant(model, fault):
    """Plant a fault into a module in the middle of a model; return its path."""
    from torch import nn

    found = [
        (path, module)
        for path, module in model.named_modules()
        if isinstance(module, nn.Linear if fault == "scaled" else (nn.LayerNorm, nn.Linear))
        or (fault == "shifted" and type(module).__name__.endswith("RMSNorm"))
    ]
    path, module = found[len(found) // 2]
    forward = module.forward

    def changed(*args, **kwargs):
        output = forward(*args, **kwargs)
        return output * 1.01 if fault == "scaled" else output + 0.01

    module.forward = changed
    return path


def record(framework, name, folder, fault):
    """Train one step under a framework, and record it; print the path of the planted fault."""
    if framework == "mindspore":
        import mindnlp  # noqa: F401  # torch is mindtorch from here on
    import torch

    from tests.programs.torch_nets import MODELS

    model, batch = MODELS[name]()
    if name == "cnn":  # the BatchNorm of mindtorch 0.5.1 gives other numbers than PyTorch's on CPU
        model.norm = torch.nn.Identity()
    model.train()
    fill(model, torch.tensor)
    path = plant(model, fault) if fault else ""
    settings = {
        "task": "statistics",
        "level": "mix",
        "dump_path": str(folder),
        "step": [],
        "rank": [],
    }
    config = folder.parent / f"{folder.name}.json"
    config.write_text(json.dumps({**settings, "statistics": {}}), encoding="utf-8")

    def loss_of():
        output = model(**batch)
        found = getattr(output, "loss", None)
        return (output.sample * output.sample).mean() if found is None else found

    if framework == "mindspore":
        from mindtorch import autograd

        from probe import PrecisionDebugger

        trained = [p for p in model.parameters() if p.requires_grad]
        step = autograd.value_and_grad(loss_of, trained)
        debugger = PrecisionDebugger(config_path=str(config))
    else:
        from msprobe.pytorch import PrecisionDebugger

        def step():
            loss = loss_of()
            loss.backward()
            return loss

        debugger = PrecisionDebugger(config_path=str(config))
    debugger.start(model)
    loss = step()
    debugger.stop()
    debugger.step()
    print(json.dumps({"loss": float(loss), "path": path}))


def run(python, framework, name, folder, fault=""):
    """Record in a process; return what it printed."""
    words = [python, "-m", "tests.programs.torch_pair", "--record", framework, "--models", name]
    done = subprocess.run(
        [*words, "--folder", str(folder), "--fault", fault],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{framework} {name}: {done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def compared(golden, mine):
    """Return the answer of ``probe compare``."""
    import probe

    return probe.compare(golden, mine)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="cnn,llama,qwen2,mixtral,gpt2,bert,t5,vit,lora,unet")
    parser.add_argument("--pytorch", default=sys.executable, help="a Python with torch and msprobe")
    parser.add_argument("--torch", default=sys.executable, help="a Python with mindtorch")
    parser.add_argument("--record", default="")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--fault", default="")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    if arguments.record:
        record(arguments.record, arguments.models, arguments.folder, arguments.fault)
        return 0
    failed = []
    total = np.zeros(2, int)
    with tempfile.TemporaryDirectory() as made:
        root = arguments.keep or Path(made)
        root.mkdir(parents=True, exist_ok=True)
        for name in arguments.models.split(","):
            golden = root / f"{name}-pytorch"
            told = run(arguments.pytorch, "pytorch", name, golden)
            for fault in ("", *FAULTS):
                mine = root / f"{name}-{fault or 'healthy'}"
                said = run(arguments.torch, "mindspore", name, mine, fault)
                found = compared(golden, mine)
                # the functions of the adapter call others, which PyTorch has below Python
                paired = sum(found.pairs.values())
                share = paired / max(paired + len(found.only_a), 1)
                first = found.first
                names = "" if first is None else f"{first.name} {first.cell}"
                expected = said["path"] if fault else KNOWN.get(name, "")
                is_right = first is None if not expected else expected in names
                total += paired, len(found.only_a)
                row = {
                    "model": name, "fault": fault, "losses": [told["loss"], said["loss"]],
                    "paired": round(share, 4), "first": first.name if first else None,
                    "expected": expected, "kind": first.kind if first else None,
                    "line": f"{first.file}:{first.line}" if first else None, "right": is_right,
                }  # fmt: skip
                print(json.dumps(row), flush=True)
                failed += [] if is_right else [(name, fault)]
    share = total[0] / max(total.sum(), 1)
    print(json.dumps({"failed": failed, "paired": round(float(share), 5)}))
    return 1 if failed or share < LEAST_PAIRED else 0


if __name__ == "__main__":
    sys.exit(main())

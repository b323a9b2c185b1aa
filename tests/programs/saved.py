# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trains public nets bare and under the guard of saved tensors. Prints a table in Markdown: it has to find nothing.

python -m tests.programs.saved [NET ...]        (needs the package mindcv)
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import mindcv
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

from probe import PrecisionDebugger
from tests.programs.seen import NETS

STEPS = 2
CHOSEN = [name for name in NETS if name not in ("mobilevit_xx_small", "densenet121")]


def train(name, debugger=None):
    """Return the bytes of every loss, gradient and parameter, and the number of parameters."""
    ms.set_seed(1)
    np.random.seed(1)
    net = mindcv.create_model(name, num_classes=10)
    net.set_train()
    loss, optimizer = nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.01)
    size = 224 if "swin" in name or "vit" in name else 64
    images = Tensor(np.random.default_rng(0).standard_normal((2, 3, size, size), dtype=np.float32))
    gradient = ms.value_and_grad(lambda x, y: loss(net(x), y), None, net.trainable_params())
    seen = []
    for _ in range(STEPS):
        if debugger is not None:
            debugger.start(net)
        value, gradients = gradient(images, Tensor([1, 2], ms.int32))
        optimizer(gradients)
        if debugger is not None:
            debugger.stop()
            debugger.step()
        seen += [
            tensor.asnumpy().tobytes() for tensor in (value, *gradients, *net.get_parameters())
        ]
    return seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nets", nargs="*", default=CHOSEN)
    failed = False
    print("| net | tensors | different | findings | errors |\n|---|---|---|---|---|")
    for name in parser.parse_args().nets:
        bare = train(name)
        if train(name) != bare:
            print(f"| {name} | does not repeat itself | | | |", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "config.json"
            settings = {
                "task": "structure",
                "level": "mix",
                "dump_path": f"{folder}/dump",
                "saved_tensors": True,
            }
            config.write_text(json.dumps({**settings, "quiet": True}))
            debugger = PrecisionDebugger(config_path=str(config))
            watched = train(name, debugger)
            debugger.close()
            found = [
                line
                for path in Path(folder).rglob("findings.jsonl")
                for line in path.read_text().splitlines()
            ]
            errors = [path.read_text() for path in Path(folder).rglob("dump_error_info.log")]
        different = sum(one != other for one, other in zip(bare, watched))
        failed |= bool(different or found or errors or len(bare) != len(watched))
        print(f"| {name} | {len(bare)} | {different} | {len(found)} | {len(errors)} |", flush=True)
        for text in (found + errors)[:3]:
            print(text, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    sys.exit(main())

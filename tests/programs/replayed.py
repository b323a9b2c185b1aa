# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Records one step of public nets at level mix with arrays, and makes all calls again. Prints a table in Markdown.

python -m tests.programs.replayed [NET ...]        (needs the package mindcv)
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

import mindcv
import mindspore as ms
import numpy as np
from mindcv.models.vit import VisionTransformer
from mindspore import Tensor, nn

import probe

NETS = ["resnet18", "mobilenet_v2_035_224", "shufflenet_v2_x0_5", "vit"]
#: the least share of entries that are made again
LEAST = {"forward": 0.95, "backward": 0.9}


def build(name):
    """Return a network of ten classes for images of 32 x 32."""
    if name != "vit":
        return mindcv.create_model(name, num_classes=10)
    return VisionTransformer(
        image_size=32, patch_size=8, embed_dim=64, depth=3, num_heads=4, num_classes=10
    )


def record(name, folder):
    """Record one step of a training."""
    ms.set_seed(1)
    np.random.seed(1)
    net = build(name)
    net.set_train()
    loss = nn.CrossEntropyLoss()
    images = Tensor(np.random.default_rng(0).standard_normal((2, 3, 32, 32), dtype=np.float32))
    gradient = ms.value_and_grad(lambda x, y: loss(net(x), y), None, net.trainable_params())
    config = folder / "config.json"
    config.write_text(
        json.dumps({"task": "tensor", "level": "mix", "dump_path": str(folder / "dump")})
    )
    debugger = probe.PrecisionDebugger(config_path=str(config))
    debugger.start(net)
    gradient(images, Tensor([1, 2], ms.int32))
    debugger.stop()
    debugger.step()
    debugger.close()
    return folder / "dump"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("nets", nargs="*", default=NETS)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    print(
        "| net | forward, replayed | backward, replayed | worse than expected | wrong |\n|---|---|---|---|---|"
    )
    told, failed = [], 0
    for name in parser.parse_args().nets:
        with tempfile.TemporaryDirectory() as folder:
            calls = [
                call
                for call in probe.replay(record(name, Path(folder)))
                if not call.name.startswith("Cell.")
            ]
        shares = []
        for direction, least in LEAST.items():
            those = [call for call in calls if call.name.endswith(direction)]
            made = sum(call.verdict != "not replayable" for call in those)
            shares.append(f"{made} of {len(those)}")
            failed += made < least * len(those)
        counts = Counter(call.verdict for call in calls)
        failed += bool(counts["wrong"])
        print(
            f"| {name} | {shares[0]} | {shares[1]} | {counts['worse than expected']} | {counts['wrong']} |",
            flush=True,
        )
        told += [f"{name}: {call}" for call in calls if call.verdict != "ok"]
    print("\n".join(told))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

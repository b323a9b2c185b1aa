# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Counts the nodes of the graphs of public nets that no recorded call has made. Prints a table in Markdown.

python -m tests.programs.seen [--level L1] [NET ...]        (needs the package mindcv)
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
import pytest
from mindspore import Tensor, nn

from probe import PrecisionDebugger
from tests.support.graph import unseen_nodes

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)

NETS = (
    "resnet18 mobilenet_v2_035_224 mobilenet_v3_small_075 squeezenet1_0 shufflenet_v2_x0_5 ghostnet_050 mnasnet_050 "
    "convnext_tiny swin_tiny vit_b_32_224 mobilevit_xx_small densenet121"
).split()


def watch(name, level):
    """Return the number of nodes, the unseen ones, and the entries with and without operations of no listed API."""
    ms.set_seed(1)
    net = mindcv.create_model(name, num_classes=10)
    net.set_train()
    loss = nn.CrossEntropyLoss()
    size = 256 if "mobilevit" in name else 224
    images = Tensor(np.random.default_rng(0).standard_normal((2, 3, size, size), dtype=np.float32))
    gradient = ms.value_and_grad(lambda x, y: loss(net(x), y), None, net.trainable_params())
    entries, errors = {}, []
    for unlisted in (True, False):
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patches:
            config = Path(folder) / "config.json"
            settings = {
                "task": "structure",
                "level": level,
                "dump_path": f"{folder}/dump",
                "unlisted": unlisted,
            }
            config.write_text(json.dumps(settings))
            debugger = PrecisionDebugger(config_path=str(config))
            debugger.start(net)
            with unseen_nodes(patches) as graph:
                gradient(images, Tensor([1, 2], ms.int32))
            debugger.stop()
            debugger.step()
            debugger.close()
            errors += [log.read_text() for log in Path(folder).rglob("dump_error_info.log")]
            entries[unlisted] = len(
                json.loads(next(Path(folder).rglob("construct.json")).read_text())
            )
        if unlisted:
            seen = graph
    return seen, entries, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--level", default="mix")
    parser.add_argument("nets", nargs="*", default=NETS)
    options = parser.parse_args()
    print("| net | nodes | unseen | entries | with `unlisted: false` |\n|---|---|---|---|---|")
    failed = 0
    for name in options.nets:
        graph, entries, errors = watch(name, options.level)
        kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(graph.unseen).items())
        print(
            f"| {name} | {graph.nodes} | {kinds or 0} | {entries[True]} | {entries[False]} |",
            flush=True,
        )
        failed += bool(errors) or len(graph.unseen) > 0.005 * graph.nodes
        if errors:
            print(errors[0], file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())

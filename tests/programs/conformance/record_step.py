# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Dumps the first step of a training with probe or with msprobe, each in an interpreter that has it.

python -m tests.programs.conformance.record_step --tool probe --net lenet --level mix --task statistics --out DIR \\
    [--summary md5] [--support-ops FILE] [--graph-mode] [--without-updates]
"""

from __future__ import annotations

import argparse
import importlib
import json
import os

parser = argparse.ArgumentParser()
parser.add_argument("--tool", choices=["probe", "msprobe", "none"], required=True)
parser.add_argument("--net", required=True)
parser.add_argument("--level", default="L1")
parser.add_argument("--task", default="statistics")
parser.add_argument("--summary", default="statistics")
parser.add_argument("--support-ops")
parser.add_argument("--graph-mode", action="store_true")
parser.add_argument("--without-updates", action="store_true")
parser.add_argument("--out", required=True)
args = parser.parse_args()

import mindspore as ms
import numpy as np

if args.graph_mode:
    ms.set_context(mode=ms.GRAPH_MODE)
else:
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")

from tests.support import nets

net, train = nets.build(args.net)
debugger = None
if args.tool != "none":
    if args.tool == "msprobe":  # mint.norm has no CPU kernel
        from mindspore import mint

        mint.norm = lambda x, *a, **k: np.linalg.norm(x.asnumpy().astype(np.float32))
    os.makedirs(args.out, exist_ok=True)
    settings = {
        "task": args.task,
        "dump_path": os.path.join(args.out, "dump"),
        "level": args.level,
        args.task: {"summary_mode": args.summary},
    }
    if args.without_updates:
        settings["optimizer"] = "off"
    if args.support_ops:
        settings["support_ops"] = args.support_ops
    config = os.path.join(args.out, "config.json")
    with open(config, "w") as file:
        json.dump(settings, file)
    os.chmod(config, 0o640)
    module = "probe" if args.tool == "probe" else "msprobe.mindspore"
    debugger = importlib.import_module(module).PrecisionDebugger(config_path=config)
    debugger.start(net, rank_id=0)
loss, gradients = train(0)
loss.asnumpy()
if debugger:
    debugger.stop()
    debugger.step()
os.makedirs(args.out, exist_ok=True)
np.savez(
    os.path.join(args.out, "numbers.npz"),
    loss.asnumpy(),
    *[gradient.asnumpy() for gradient in gradients],
)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Save the same values of the same training at level "debug", by probe or by msprobe.

python -m tests.programs.conformance.save_values --tool probe --out DIR
"""

from __future__ import annotations

import argparse
import importlib
import json
import os

import mindspore as ms
import numpy as np

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")

from mindspore import mint, nn

from tests.support import nets

parser = argparse.ArgumentParser()
parser.add_argument("--tool", required=True)
parser.add_argument("--task", default="statistics")
parser.add_argument("--out", required=True)
args = parser.parse_args()

if args.tool != "probe":  # mint.norm has no kernel on CPU
    mint.norm = lambda x, *_, **__: np.linalg.norm(x.asnumpy().astype(np.float32))
os.makedirs(args.out, mode=0o750)
config = os.path.join(args.out, "config.json")
with open(config, "w") as file:
    json.dump(
        {
            "task": args.task,
            "level": "debug",
            "dump_path": os.path.join(args.out, "dump"),
            args.task: {},
        },
        file,
    )
os.chmod(config, 0o640)
module = {"probe": "probe", "msprobe": "msprobe.mindspore"}[args.tool]
debugger = importlib.import_module(module).PrecisionDebugger(config_path=config)

net, _ = nets.build("lenet")
images = ms.Tensor(np.random.RandomState(0).normal(size=(4, 1, 32, 32)).astype(np.float32))
labels = ms.Tensor(np.array([1, 2, 3, 4], np.int32))


def forward(x):
    features = net.features(x)
    debugger.save(features, "features")
    logits = net.classifier(features)
    debugger.save({"logits": logits, "both": [features, logits]}, "nested")
    debugger.save(0.5, "number", save_backward=False)
    return nn.CrossEntropyLoss()(logits, labels)


ms.value_and_grad(forward, None, net.trainable_params())(images)
debugger.step()

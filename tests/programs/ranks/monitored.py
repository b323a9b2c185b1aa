# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The digits on two ranks, bare and under the monitor; and once more with the weights of rank 1 drifting.

python tests/programs/ranks/monitored.py OUT
"""

from __future__ import annotations

import json
import os
import sys

import mindspore as ms
from mindspore import nn
from mindspore.communication import GlobalComm
from mindspore.mint import distributed

from probe import PrecisionDebugger, TrainerMon
from tests.programs.ranks.digits import RANK, SIZE, reduced
from tests.support import nets

OUT = sys.argv[1]
STEPS, DRIFT = 60, 20


def train(debugger=None, drifts=False):
    """Return the losses and the digests of the parameters of each step."""
    import zlib

    ms.set_seed(1)
    net = nets.Digits()
    net.set_train()
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    loss_of = nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
    data, seen = nets.digits(), []
    for step in range(STEPS):
        if debugger is not None:
            debugger.start(net)
        loss, gradients = gradient(*data[(step * SIZE + RANK) % len(data)])
        optimizer(reduced(gradients))
        if drifts and RANK == 1 and step >= DRIFT:
            weight = net.trainable_params()[0]
            weight.set_data(weight * 1.01)
        if debugger is not None:
            debugger.stop()
            debugger.step()
        distributed.barrier()
        seen.append(
            [
                float(loss.asnumpy()),
                *(zlib.crc32(p.asnumpy().tobytes()) for p in net.get_parameters()),
            ]
        )
    return seen


def watched(name, drifts=False):
    """Return the same under the monitor, and its alarms."""
    path = os.path.join(OUT, f"{name}.{RANK}.json")
    with open(path, "w") as file:
        json.dump(
            {"task": "monitor", "dump_path": os.path.join(OUT, name), "monitor": {"interval": 5}},
            file,
        )
    debugger, found = PrecisionDebugger(config_path=path), []
    debugger.on_alarm(found.append)
    seen = train(debugger, drifts)
    debugger.close()
    return seen, [alarm.to_dict() for alarm in found]


def trainer_mon():
    """Train under TrainerMon; return the csv files that this rank has written, and the rows of its collectives."""
    os.environ["MONITOR_OUTPUT_DIR"] = os.path.join(OUT, "csv")
    path = os.path.join(OUT, f"trainer.{RANK}.json")
    with open(path, "w") as file:
        collectives = {"enable": True, "cc_pre_hook": True, "cc_codeline": ["in reduced"]}
        json.dump({"wg_distribution": True, "ops": ["norm"], "cc_distribution": collectives}, file)
    net = nets.Digits()
    net.set_train()
    optimizer, loss_of = nn.Momentum(net.trainable_params(), 0.05, 0.9), nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
    monitor = TrainerMon(path)
    monitor.set_monitor(net, optimizer, dp_group=GlobalComm.WORLD_COMM_GROUP)
    for batch in nets.digits()[:2]:
        optimizer(reduced(gradient(*batch)[1]))
    monitor.close()
    (own,) = [
        name for name in os.listdir(os.environ["MONITOR_OUTPUT_DIR"]) if f"-rank{RANK}-" in name
    ]
    folder = os.path.join(OUT, "csv", own)
    with open(os.path.join(folder, "cc_distribution_1-1.csv")) as file:
        rows = file.read().splitlines()
    return sorted(os.listdir(folder)), rows


bare = train()
same, quiet = watched("healthy")
_, alarms = watched("drifting", drifts=True)
with open(os.path.join(OUT, f"rank{RANK}.json"), "w") as file:
    written, collectives = trainer_mon()
    said = {"healthy": quiet, "drifting": alarms, "csv": written, "collectives": collectives}
    json.dump({"bits": same == bare, **said}, file)

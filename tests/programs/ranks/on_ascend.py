# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Collectives on the simulated Ascend, bare and recorded: ``on_ascend.py FOLDER MEASURE``; "fails" lets rank 1 fail."""

import hashlib
import json
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init
from mindspore.mint import distributed

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("Ascend")
init()

from probe import PrecisionDebugger
from tests.ascend.simulator import Device

folder, measure = Path(sys.argv[1]), sys.argv[2]
rank, size = get_rank(), get_group_size()


def step(seen):
    """Run one collective of each kind, and a step of a data parallel training."""
    x = Tensor(np.arange(4 * size, dtype=np.float32) + rank)
    total = ops.AllReduce()(x)
    handle = distributed.all_reduce(x, async_op=True)
    handle.wait()
    gathered = ops.AllGather()(x[:2])
    part = ops.ReduceScatter()(total)
    root = Tensor(np.full(3, rank + 7.0, np.float32))
    distributed.broadcast(root, 1)
    ring = Tensor(np.zeros(2, np.float32))
    if rank % 2:
        distributed.recv(ring, rank - 1)
        distributed.send(part[:2], rank - 1)
    else:
        distributed.send(part[:2], rank + 1)
        distributed.recv(ring, rank + 1)
    parts = ops.AlltoAll(split_count=size, split_dim=0, concat_dim=0)(gathered)
    ms.set_seed(1)
    net = nn.Dense(4, 3)
    update = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    reducer = nn.DistributedGradReducer(update.parameters)
    inputs = Tensor(np.random.RandomState(rank).randn(8, 4).astype(np.float32))
    loss, gradients = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, update.parameters)(
        inputs
    )
    update(reducer(gradients))
    seen += [x, total, gathered, part, root, ring, parts, loss, *net.get_parameters()]
    assert total.asnumpy().tolist() == [size * k + sum(range(size)) for k in range(4 * size)]
    assert root.asnumpy().tolist() == [8.0] * 3


debugger = None
if measure != "bare":
    debugger = PrecisionDebugger(
        dump_path=str(folder / "dump"), level="mix", config_path=str(folder / "config.json")
    )
seen = []
for i in range(2):
    if measure == "fails" and i == 1 and rank == 1:
        Device().plan("fail run HcclAllReduce")
    if debugger:
        debugger.start(nn.Dense(1, 1))
    try:
        step(seen)
    finally:
        if debugger:
            debugger.stop()
            debugger.step()
digest = hashlib.sha256(b"".join(tensor.asnumpy().tobytes() for tensor in seen)).hexdigest()
(folder / f"rank{rank}.json").write_text(json.dumps(digest))

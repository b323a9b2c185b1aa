# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Every collective that has a kernel here, watched; what the training itself saw goes into rank{R}.json."""

from __future__ import annotations

import functools
import json
import os
import sys
import time
import types

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from probe import PrecisionDebugger

OUT = sys.argv[1]

ms.set_context(mode=ms.PYNATIVE_MODE)  # asynchronous: a communication does not keep the program
ms.set_device("CPU")
said = {}


def settle():
    ms.common.api._pynative_executor.sync()


def debugger(name, **settings):
    """Return a debugger that writes below a folder of this name."""
    path = os.path.join(OUT, f"{name}.{os.getpid()}.json")
    settings = {"task": "tensor", "level": "L1", "dump_path": os.path.join(OUT, name), **settings}
    with open(path, "w") as file:
        json.dump(settings, file)
    return PrecisionDebugger(config_path=path)


# communication that is initialised after start(); the scheduler of msrun gets here too, and must leave nothing
late = debugger("late", rank=[] if len(sys.argv) < 3 else [1])
late.start()
before = ops.relu(Tensor([-1.0, 2.0]))
from mindspore.communication import get_group_size, get_rank, init

init()
RANK, SIZE = get_rank(), get_group_size()
from mindspore.mint import distributed

after = ops.exp(Tensor([0.0]))
said["late_before"] = sorted(os.listdir(os.path.join(OUT, "late", "step0")))
late.stop()
late.step()
late.start()
ops.relu(before)
late.stop()
late.step()


def tensor(*shape):
    return Tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 10 * RANK)


def zeros(*shape):
    return Tensor(np.zeros(shape, np.float32))


class Held(nn.Cell):
    """Holds the Primitives."""

    def __init__(self):
        super().__init__()
        self.reduce, self.gather, self.spread = ops.AllReduce(), ops.AllGather(), ops.Broadcast(0)

    def construct(self, x):
        return self.reduce(x), self.gather(x), self.spread((x,))[0]


watch = debugger("all")
held = Held()
watch.start(held)
x = tensor(3)
distributed.all_reduce(x)
seen = {"all_reduce.0": x.asnumpy().tolist()}
y = tensor(3)
handle = distributed.all_reduce(y, async_op=True)
handle.wait()
seen["all_reduce.1"] = y.asnumpy().tolist()
z = tensor(2)
distributed.broadcast(z, 1)
seen["broadcast.0"] = z.asnumpy().tolist()
gathered = [zeros(2) for _ in range(SIZE)]
distributed.all_gather(gathered, tensor(2))
seen["all_gather.0"] = [item.asnumpy().tolist() for item in gathered]
got = zeros(2)
distributed.scatter(
    got, [tensor(2) + 100 * rank for rank in range(SIZE)] if RANK == 0 else [zeros(2)] * SIZE, src=0
)
seen["scatter.0"] = got.asnumpy().tolist()
gathered = [zeros(2) for _ in range(SIZE)]
distributed.gather(tensor(2), gathered, dst=0)
seen["gather.0"] = [item.asnumpy().tolist() for item in gathered]
distributed.barrier()
objects = [None] * SIZE
distributed.all_gather_object(objects, {"rank": RANK, "name": f"r{RANK}"})
seen["all_gather_object.0"] = objects
group = "mccl_world_group"
objects = [None] * SIZE
try:
    distributed.gather_object({"rank": RANK}, objects, 0, group)
    seen["gather_object.0"] = objects
except RuntimeError as error:
    seen["gather_object.0"] = f"RuntimeError: {error}"
seen["primitives"] = [result.asnumpy().tolist() for result in held(tensor(2))]
watch.stop()
watch.step()
said["seen"] = seen

own = types.ModuleType("own")
own.reduce = lambda x: distributed.all_reduce(x, async_op=True)


def patient(name, reduce, level="L1", task="tensor"):
    """Rank 1 takes part in a reduction only after rank 0 has done more, which it tells by a file."""
    flag = os.path.join(OUT, f"flag-{name}")
    watch = debugger(name, level=level, task=task)
    net = nn.SequentialCell(nn.ReLU())
    x = tensor(4)
    if name == "custom":
        watch.register_custom_api(own, "reduce")
    watch.start(net, token_range=[1, 1] if name == "tokens" else None)
    begun = time.monotonic()
    if RANK == 1:
        while not os.path.exists(flag) and time.monotonic() - begun < 200:
            time.sleep(0.01)
        said[f"{name}-flag"] = os.path.exists(flag)
    handle = reduce(x)
    if name == "tokens":
        net(tensor(2))
    between = net(tensor(2) * 3) if level == "L0" or name == "tokens" else ops.relu(tensor(2) * 3)
    watch.stop()
    if RANK == 0:
        open(flag, "w").close()
    handle.wait()
    said[name] = [x.asnumpy().tolist(), between.asnumpy().tolist()]
    watch.step()
    if name == "custom":
        watch.restore_custom_api(own, "reduce")


reduce = functools.partial(
    distributed.all_reduce, async_op=True
)  # the original, whatever stands there later
patient("L1", lambda x: distributed.all_reduce(x, async_op=True))
patient("L0", lambda x: distributed.all_reduce(x, async_op=True), level="L0")
patient("alias", reduce)
patient("custom", lambda x: own.reduce(x))
patient("tokens", reduce)
patient(
    "structure", lambda x: distributed.all_reduce(x, async_op=True), level="mix", task="structure"
)

# one that nobody waits for
forgotten = debugger("forgotten")
forgotten.start()
x = tensor(4)
distributed.all_reduce(x, async_op=True)
ops.relu(tensor(2))
forgotten.stop()
forgotten.step()

# not finite on rank 1 only
check = debugger("check", task="nan_check")
check.start()
x = tensor(2) / (1 - RANK)
distributed.all_reduce(x)
check.stop()
check.step()

with open(os.path.join(OUT, f"rank{RANK}.json"), "w") as file:
    json.dump(said, file)

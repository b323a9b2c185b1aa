# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Small trainings of several ranks, each recorded into FOLDER/NAME: agreement.py FOLDER NAME...

The faults and the healthy layouts of ``probe ranks``. Each training runs in the same process after the others.
"""

from __future__ import annotations

import json
import os
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init
from mindspore.mint import distributed

from probe import PrecisionDebugger
from tests.programs.ranks import tensor_parallel
from tests.sharded.rig import DTensor, Mesh, Replicate, Shard

FOLDER, NAMES = sys.argv[1], sys.argv[2:]
STEPS = 3
MONITOR = {"task": "monitor", "level": "L0", "monitor": {"interval": 1}}
LAST_HAS_NO_MODEL = "one_without_a_model"

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")
init()
RANK, SIZE = get_rank(), get_group_size()
IS_LAST = RANK == SIZE - 1


class Net(nn.Cell):
    """Three layers with a BatchNorm behind the first."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Dense(8, 16), nn.BatchNorm1d(16)
        self.middle, self.last = nn.Dense(16, 8), nn.Dense(8, 3)

    def construct(self, x):
        hidden = ops.relu(self.norm(self.first(x)))
        return self.last(ops.relu(self.middle(hidden)))


class Stage(nn.Cell):
    """One stage of a pipeline, whose layer has a name."""

    def __init__(self, name):
        super().__init__()
        self.insert_child_to_cell(name, nn.Dense(8, 8))
        self.layer_name = name

    def construct(self, x):
        return ops.tanh(getattr(self, self.layer_name)(x))


def summed(tensor):
    """Return the sum over all ranks."""
    whole = tensor.copy()
    distributed.all_reduce(whole)
    return whole


def averaged(gradients):
    """Return the means over all ranks."""
    return tuple(summed(gradient) / SIZE for gradient in gradients)


def averaged_in_one(gradients):
    """Return the means over all ranks, of all gradients in one bucket."""
    bucket = ops.concat([gradient.reshape(-1) for gradient in gradients])
    means, start = summed(bucket) / SIZE, 0
    parts = []
    for gradient in gradients:
        parts.append(means[start : start + gradient.size].reshape(gradient.shape))
        start += gradient.size
    return tuple(parts)


def averaged_of_pairs(gradients):
    """Return the means over the ranks of the same parity: those that hold the same part of a split layer."""
    found = []
    for gradient in gradients:
        parts = [ops.zeros_like(gradient) for _ in range(SIZE)]
        distributed.all_gather(parts, gradient)
        own = parts[RANK % 2 :: 2]
        found.append(sum(own[1:], own[0]) / len(own))
    return tuple(found)


def shared(parameters, but=()):
    """Give all ranks the parameters of rank 0, but those whose names begin so."""
    for parameter in parameters:
        if not parameter.name.startswith(tuple(but)):
            value = Tensor(parameter.asnumpy())
            distributed.broadcast(value, 0)
            parameter.set_data(value)


def batches(number=None, steps=STEPS):
    """Yield the batches of a rank, or of the rank with this number."""
    random = np.random.default_rng(RANK if number is None else number)
    for _ in range(steps):
        x = random.normal(size=(6, 8)).astype(np.float32)
        yield Tensor(x), Tensor(random.integers(0, 3, 6), ms.int32)


class Recorded:
    """The steps of a training between start and step; ``model`` is that of start()."""

    def __init__(self, name, model=None, **settings):
        path = os.path.join(FOLDER, f"{name}.{RANK}.json")
        steps = {} if settings.get("task") == "monitor" else {"step": [0, 1]}
        settings = {"task": "statistics", "level": "mix", **steps, **settings}
        with open(path, "w") as file:
            json.dump({"dump_path": os.path.join(FOLDER, name), **settings}, file)
        self._debugger, self._model = PrecisionDebugger(config_path=path), model

    def __enter__(self):
        self._debugger.start(*([] if self._model is None else [self._model]))
        return self

    def __exit__(self, *_):
        self._debugger.stop()
        self._debugger.step()
        distributed.barrier()

    def close(self):
        self._debugger.close()


def replicas(
    name,
    prepare=lambda net: None,
    seed=0,
    reduce=averaged,
    optimizer=nn.SGD,
    with_model=True,
    data=None,
    **settings,
):
    """Train the net on each rank with batches of its own; ``prepare`` changes it after rank 0's seed or ``seed``."""
    ms.set_seed(1 + seed)
    net = Net()
    net.set_train()
    prepare(net)
    update, loss_of = optimizer(net.trainable_params(), 0.05), nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, update.parameters)
    recorded = Recorded(name, net if with_model else None, **settings)
    for batch in batches(data, 12 if settings.get("task") == "monitor" else STEPS):
        with recorded:
            _, gradients = gradient(*batch)
            update(reduce(gradients))
    recorded.close()


def statistic_apart(net):
    if IS_LAST:
        mean = net.norm.moving_mean
        mean.set_data(Tensor(mean.asnumpy() + 0.25))


def evaluating(net):
    net.set_train(not IS_LAST)


def zero(name):
    """Each rank updates some parameters, and gives them to all others."""
    ms.set_seed(1)
    net = Net()
    net.set_train()
    parameters, loss_of = net.trainable_params(), nn.CrossEntropyLoss()
    own = parameters[RANK::SIZE]
    update = nn.SGD(own, 0.05)
    gradient = ms.value_and_grad(
        lambda x, y: loss_of(net(x), y), None, ms.ParameterTuple(parameters)
    )
    recorded = Recorded(name, net)
    for batch in batches():
        with recorded:
            _, gradients = gradient(*batch)
            update(averaged(gradients)[RANK::SIZE])
            for place, parameter in enumerate(parameters):
                value = Tensor(parameter.asnumpy())
                distributed.broadcast(value, place % SIZE)
                parameter.set_data(value)
    recorded.close()


def tensor_parallel_of(name, ranks, place, replicas_of=1):
    """Train layers that are split over ranks; ``replicas_of`` groups hold the same parts."""
    random = np.random.RandomState(3)
    net = tensor_parallel.Net(
        lambda *shape: random.randn(*shape).astype(np.float32) * 0.3, place, ranks
    )
    if replicas_of > 1:
        for _, cell in net.cells_and_names():
            if isinstance(cell, (tensor_parallel.Copy, tensor_parallel.Reduce)):
                cell.add_up = OfPair()
    net.set_train()
    update = nn.SGD(net.trainable_params(), 0.01)
    gradient = ms.value_and_grad(net, None, update.parameters)
    data = np.random.RandomState(5 + RANK // ranks)
    recorded = Recorded(name, net)
    for _ in range(STEPS):
        x = Tensor(data.randn(8, tensor_parallel.WIDTH).astype(np.float32))
        with recorded:
            _, gradients = gradient(x)
            update(averaged_of_pairs(gradients) if replicas_of > 1 else gradients)
    recorded.close()


class OfPair(nn.Cell):
    """The sum over two neighbours: a CPU has no group but that of all ranks."""

    def __init__(self):
        super().__init__()
        self.gather = ops.AllGather()

    def construct(self, x):
        parts = self.gather(x.expand_dims(0))
        first = RANK // 2 * 2
        return parts[first] + parts[first + 1]


def pipeline(name, names):
    """Train two stages, one on each half of the ranks; they hand on by broadcasts, as a CPU has no send."""
    half = SIZE // 2
    stage, partner = divmod(RANK, half)
    ms.set_seed(1 + stage)
    net = Stage(names[stage])
    net.set_train()
    update = nn.SGD(net.trainable_params(), 0.05)
    backward = ms.grad(lambda x, dout: (net(x) * dout).sum(), None, update.parameters)
    both = ms.grad(lambda x: (net(x) ** 2).mean(), 0, update.parameters)
    recorded, nothing = Recorded(name, net), ops.zeros((6, 8), ms.float32)
    for x, _ in batches(partner):
        with recorded:
            made = net(x) if stage == 0 else nothing
            given = handed_on(made, partner)
            back, own = both(given) if stage == 1 else (nothing, None)
            back = handed_on(back, partner + half)
            update(own if stage == 1 else backward(x, back))
    recorded.close()


def handed_on(tensor, source):
    """Return what the source has; all ranks broadcast in turn, and each keeps that of its partner."""
    found = None
    for rank in range(SIZE):
        value = tensor.copy()
        distributed.broadcast(value, rank)
        if rank == source:
            found = value
    return found


def one_without_a_model(name):
    """The last rank only takes part in the sums."""
    ms.set_seed(1)
    net = Net()
    net.set_train()
    update, loss_of = nn.SGD(net.trainable_params(), 0.05), nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, update.parameters)
    recorded = Recorded(name, **({"level": "L1"} if IS_LAST else {"model": net}))
    shapes = [parameter.shape for parameter in update.parameters]
    for batch in batches():
        with recorded:
            if IS_LAST:
                averaged([ops.zeros(shape, ms.float32) for shape in shapes])
            else:
                _, gradients = gradient(*batch)
                update(averaged(gradients))
    recorded.close()


class Placed(nn.Cell):
    """A layer of distributed tensors: its weight is split, its second weight is the same on all ranks."""

    def __init__(self, random, factor):
        super().__init__()
        mesh = Mesh(RANK, tp=SIZE)
        whole = random.randn(8 * SIZE, 8).astype(np.float32)
        own = Tensor(np.split(whole, SIZE)[RANK])
        self.split = ms.Parameter(DTensor(own, mesh, (Shard(0),)), name="split")
        same = Tensor(random.randn(8, 8).astype(np.float32) * factor)
        self.same = ms.Parameter(DTensor(same, mesh, (Replicate(),)), name="same")
        self.matmul = ops.MatMul()

    def construct(self, x):
        return self.matmul(self.matmul(x, self.same), self.split)


def distributed_tensors(name, fault=False):
    """Call layers of distributed tensors; with a fault the last rank has another tensor that is the same elsewhere."""
    random = np.random.RandomState(3)
    model = nn.SequentialCell(Placed(random, 1.1 if fault and IS_LAST else 1.0))
    recorded = Recorded(name, model)
    data = np.random.RandomState(5)
    for _ in range(STEPS):
        with recorded:
            model(Tensor(data.randn(6, 8).astype(np.float32)))
    recorded.close()


ALL = {
    "a_seed_each": lambda name: replicas(name, seed=RANK),
    "a_seed_each_without_a_model": lambda name: replicas(
        name, seed=RANK, with_model=False, level="L1"
    ),
    "a_seed_each_in_one_bucket": lambda name: replicas(name, seed=RANK, reduce=averaged_in_one),
    "a_seed_each_and_nothing_in_common": lambda name: replicas(name, seed=RANK, reduce=tuple),
    "last_has_another_seed": lambda name: replicas(name, seed=int(IS_LAST)),
    "one_layer_not_shared": lambda name: replicas(
        name, lambda net: shared(net.trainable_params(), ["middle."]), seed=RANK
    ),
    "statistic_apart": lambda name: replicas(name, statistic_apart),
    "last_evaluates": lambda name: replicas(name, evaluating),
    "data_parallel": lambda name: replicas(name),
    "data_parallel_without_a_model": lambda name: replicas(name, with_model=False, level="L1"),
    "data_parallel_in_one_bucket": lambda name: replicas(name, reduce=averaged_in_one),
    "same_batch": lambda name: replicas(name, data=0),
    "zero": zero,
    "tensor_parallel": lambda name: tensor_parallel_of(name, SIZE, RANK),
    "tensor_and_data_parallel": lambda name: tensor_parallel_of(name, 2, RANK % 2, SIZE // 2),
    "pipeline": lambda name: pipeline(name, ("front", "back")),
    "pipeline_with_the_same_names": lambda name: pipeline(name, ("layer", "layer")),
    LAST_HAS_NO_MODEL: one_without_a_model,
    "distributed_tensors": distributed_tensors,
    "distributed_tensor_apart": lambda name: distributed_tensors(name, fault=True),
    "monitored_a_seed_each": lambda name: replicas(name, seed=RANK, **MONITOR),
    "monitored": lambda name: replicas(name, **MONITOR),
}


if __name__ == "__main__":
    for word in NAMES or list(ALL):
        ALL[word](word)
        print(f"done: {word}", flush=True)

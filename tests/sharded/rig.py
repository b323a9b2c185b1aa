# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the libraries of sharded trainings, as small as they can be.

* ``DTensor``: a shell around the part of one rank, which serves few operations and refuses all others.
* ``FullyShard``: keeps a part of each parameter, and swaps the whole in for the time of a forward.
* ``Ranks``: two ranks in one process, which communicate by Python.
* ``one_forward_one_backward``: two stages and their micro-batches, in the order of 1F1B.
* ``Schedule``: the same by steps, as hyper_parallel has them: each tells its stage which micro-batch it runs.
"""

from __future__ import annotations

import contextlib
from typing import ClassVar, NamedTuple

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from probe.executor import pynative_executor

try:
    from mindspore._c_expression import NoFallbackGuard
except ImportError:  # this MindSpore asks no shell
    NoFallbackGuard = contextlib.nullcontext


class Mesh:
    """The ranks as a grid.

    Args:
        rank: this rank.
        sizes: name -> size of each axis; the ranks are counted along the last one first.
    """

    def __init__(self, rank=0, **sizes):
        self.mesh_dim_names, self.mesh_shape = tuple(sizes), tuple(sizes.values())
        self.rank_list, self.rank = tuple(range(int(np.prod(self.mesh_shape)))), rank

    def get_coordinate(self):
        return [int(place) for place in np.unravel_index(self.rank, self.mesh_shape)]


class Placement:
    def is_shard(self, dim=None):
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_partial(self, reduce_op=None):
        return isinstance(self, Partial)

    def is_replicate(self):
        return isinstance(self, Replicate)


class Shard(Placement):
    def __init__(self, dim):
        self.dim = dim


class Partial(Placement):
    def __init__(self, reduce_op="sum"):
        self.reduce_op = reduce_op


class Replicate(Placement):
    pass


class DTensor(Tensor):
    """A shell. ``refused`` has the names of the operations that it was asked for and does not serve."""

    served = ("ReLU", "MatMul", "MatMulExt", "Dense")
    refused: ClassVar = []
    communicated: ClassVar = []

    def __new__(cls, local, mesh=None, placements=None):
        if isinstance(local, DTensor):
            local, mesh, placements = local._local_tensor, local._device_mesh, local._placements
        shell = Tensor._make_subclass(cls, local)
        shell._local_tensor, shell._device_mesh, shell._placements = local, mesh, placements
        return shell

    def __init__(self, local, mesh=None, placements=None):
        """Leave the tensor as ``__new__`` made it."""

    @property
    def local_shape(self):
        return self._local_tensor.shape

    @property
    def shape(self):
        sizes = list(self._local_tensor.shape)
        for placement, size in zip(self._placements, self._device_mesh.mesh_shape):
            if placement.is_shard():
                sizes[placement.dim] *= size
        return tuple(sizes)

    @property
    def has_init(self):
        return False

    @property
    def local_param_info(self):
        return getattr(self._local_tensor, "param_info", None)

    @local_param_info.setter
    def local_param_info(
        self, info
    ):  # Parameter gives it: the local tensor is then differentiated as the parameter
        self._local_tensor.param_info = info

    def asnumpy(self):
        return self._local_tensor.asnumpy()

    def full_tensor(self):
        self.communicated.append("full_tensor")
        raise RuntimeError("this would communicate")

    redistribute = full_tensor

    def __fallback__(self, function, args=(), kwargs=None):
        name = function.name
        if name not in self.served:
            self.refused.append(name)
            raise RuntimeError(f"Operator {name} has no layout here.")
        with NoFallbackGuard():
            made = function(*(local_of(arg) for arg in args), **(kwargs or {}))
        placed = next(arg for arg in args if isinstance(arg, DTensor))
        return DTensor(made, placed._device_mesh, placed._placements)


def local_of(value):
    return value._local_tensor if isinstance(value, DTensor) else value


class FullyShard:
    """Keeps a part of each parameter on each rank of one process. A forward has the whole, and hooks swap it.

    Args:
        models: the equal models of the ranks.
        fresh: whether each forward has new Parameters; else the whole ones stay the same objects.
    """

    def __init__(self, models, fresh=False):
        self.models, self.fresh = models, fresh
        self.shards, self.wholes = [], []
        for rank, model in enumerate(models):
            shards, wholes = {}, {}
            for path, cell in model.cells_and_names():
                for name, parameter in list(cell._params.items()):
                    part = np.split(parameter.asnumpy(), len(models))[rank]
                    shards[path, name] = cell._params[name] = Parameter(
                        Tensor(part), name=parameter.name
                    )
                    wholes[path, name] = Parameter(Tensor(parameter.asnumpy()), name=parameter.name)
                if cell._params:
                    cell.register_forward_pre_hook(self.swap_in(rank, path))
                    cell.register_forward_hook(self.swap_out(rank, path))
            self.shards.append(shards)
            self.wholes.append(wholes)

    def all_gather(self, key):
        return Tensor(np.concatenate([shards[key].asnumpy() for shards in self.shards]))

    def swap_in(self, rank, path):
        def hook(cell, args):
            for name in cell._params:
                whole, value = self.wholes[rank][path, name], self.all_gather((path, name))
                if self.fresh:
                    whole = self.wholes[rank][path, name] = Parameter(value, name=whole.name)
                else:
                    whole.set_data(value)
                cell._params[name] = whole

        return hook

    def swap_out(self, rank, path):
        def hook(cell, args, output):
            for name in cell._params:
                cell._params[name] = self.shards[rank][path, name]

        return hook

    def update(self, gradients, rate=0.1):
        """Take a step with the gradients of all ranks: all_reduce, and each rank's slice."""
        for place, key in enumerate(self.wholes[0]):
            mean = sum(of_rank[place].asnumpy() for of_rank in gradients) / len(self.models)
            for rank, shards in enumerate(self.shards):
                part = np.split(mean, len(self.models))[rank]
                shards[key].set_data(Tensor(shards[key].asnumpy() - np.float32(rate) * part))


def one_forward_one_backward(first, second, batches):
    """Run two stages over micro-batches: the forward of a batch comes before the backward of the one before.

    Args:
        first: the first stage, a Cell.
        second: the second stage, which returns the loss.
        batches: the micro-batches.

    Returns:
        The losses and the gradients, as arrays.
    """
    found, waiting = [], []
    for number in range(len(batches) + 1):
        if number < len(batches):
            waiting.append(freely(first, batches[number]))
        if number:
            made = waiting.pop(0)
            received = Parameter(
                Tensor(made.asnumpy()), name="received"
            )  # as another process has it
            loss = freely(second, received)
            back, *own = backward(
                loss, Tensor(np.float32(1.0)), [received, *second.trainable_params()]
            )
            found += [loss.asnumpy(), *(gradient.asnumpy() for gradient in own)]
            found += [
                gradient.asnumpy() for gradient in backward(made, back, first.trainable_params())
            ]
    return found


class MetaStep(NamedTuple):
    micro_index: int
    type: str
    stage_index: int


class PipelineStage:
    """One part of the model, with what it has received and made for each micro-batch."""

    def __init__(self, submodule, stage_index):
        self.submodule, self.stage_index = submodule, stage_index
        self.received, self.made, self.given, self.gradients = {}, {}, {}, {}

    def forward_one_chunk(self, micro_index, args=()):
        self.made[micro_index] = freely(self.submodule, *(args or (self.received[micro_index],)))

    def backward_one_chunk(self, micro_index, last_backward=False):
        received, back = (
            self.received.get(micro_index),
            self.given.get(micro_index, Tensor(np.float32(1.0))),
        )
        parameters = [*([] if received is None else [received]), *self.submodule.trainable_params()]
        gradients = backward(self.made[micro_index], back, parameters)
        self.gradients[micro_index] = gradients[
            len(parameters) - len(self.submodule.trainable_params()) :
        ]
        return gradients[0]


class Schedule:
    """Two stages in one process, in the order of 1F1B.

    Args:
        stages: the two stages.
        order: the micro-batches in the order in which they run.
    """

    def __init__(self, stages, order):
        self.stages, self.exec_order = stages, []
        before = None
        for micro in (*order, None):
            if micro is not None:
                self.exec_order.append(MetaStep(micro, "forward", 0))
            if before is not None:
                self.exec_order += [
                    MetaStep(before, kind, stage)
                    for kind, stage in (("forward", 1), ("backward", 1), ("backward", 0))
                ]
            before = micro

    def run(self, batches):
        """Run all steps; return the losses and the gradients, as arrays."""
        first, second = self.stages
        for step in self.exec_order:
            stage, micro = self.stages[step.stage_index], step.micro_index
            if step.type == "forward":
                if stage is second:  # as another process has it
                    stage.received[micro] = Parameter(
                        Tensor(first.made[micro].asnumpy()), name="received"
                    )
                stage.forward_one_chunk(micro, () if stage is second else (batches[micro],))
            else:
                back = stage.backward_one_chunk(micro, last_backward=micro == len(batches) - 1)
                if stage is second:
                    first.given[micro] = back
        gradients = [
            gradient
            for stage in self.stages
            for own in stage.gradients.values()
            for gradient in own
        ]
        return [tensor.asnumpy() for tensor in (*second.made.values(), *gradients)]


def freely(cell, value):
    """Call a Cell with the gradient flag on, as trainers do that call ``loss.backward()`` later."""
    pynative_executor().set_grad_flag(True)
    try:
        return cell(value)
    finally:
        pynative_executor().set_grad_flag(False)


def backward(made, gradient, parameters):
    """Return the gradients of parameters, from the gradient of a tensor that was made before."""
    return ms.value_and_grad(lambda gradient: (made * gradient).sum(), None, parameters)(gradient)[
        1
    ]


class Stage(nn.Cell):
    def __init__(self, seed, outputs, is_last=False):
        super().__init__()
        random = np.random.RandomState(seed)
        self.fc, self.is_last = nn.Dense(4, outputs), is_last
        self.fc.weight.set_data(Tensor(random.randn(outputs, 4).astype(np.float32)))
        self.fc.bias.set_data(Tensor(random.randn(outputs).astype(np.float32)))

    def construct(self, x):
        made = ops.relu(self.fc(x))
        return made.sum() if self.is_last else made

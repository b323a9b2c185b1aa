# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Parameters that are gathered for a forward, and pipelines: entries have the values that were used."""

from __future__ import annotations

import gc
import weakref

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

from tests.sharded.rig import FullyShard, Stage, one_forward_one_backward

pytestmark = pytest.mark.medium

BATCH = np.random.RandomState(0).randn(3, 4).astype(np.float32)


def train(fully_shard, start=lambda models: None, end=lambda: None, steps=2):
    """Return the bits of a training of two ranks in this process."""
    found = []
    for _ in range(steps):
        start(fully_shard.models)
        gradients = []
        for rank, model in enumerate(fully_shard.models):
            wholes = list(fully_shard.wholes[rank].values())
            loss, own = ms.value_and_grad(model, None, wholes)(Tensor(BATCH * (rank + 1)))
            gradients.append(own)
            found += [loss.asnumpy(), *(gradient.asnumpy() for gradient in own)]
        end()
        fully_shard.update(gradients)
    return found


def two_ranks(**options):
    return FullyShard([Stage(1, 6, is_last=True) for _ in range(2)], **options)


@pytest.mark.parametrize("measure", ["host", "device"])
def test_the_entry_has_the_gathered_parameters_and_their_gradients(debug, measure):
    bare = train(two_ranks())
    debugger = debug(level="mix", task="tensor", measure=measure)

    def end():
        debugger.stop()
        debugger.step()

    watched = train(two_ranks(), debugger.start, end)
    for ours, theirs in zip(watched, bare):
        np.testing.assert_array_equal(ours, theirs)
    dump = debug.dump(1)
    for rank in (0, 1):
        entry = dump.data[f"Cell.{rank}.fc.Dense.forward.0"]
        assert list(entry) == ["input_args", "input_kwargs", "parameters", "output"]
        assert {key: record["shape"] for key, record in entry["parameters"].items()} == {"weight": [6, 4], "bias": [6]}
        gradients = dump.data[f"Cell.{rank}.fc.Dense.parameters_grad.0"]
        _, *own = bare[len(bare) // 2 :][3 * rank : 3 * rank + 3]
        for key, expected in zip(("weight", "bias"), own):
            np.testing.assert_array_equal(dump.array(gradients[key][0]["data_name"]), expected)
        assert f"Cell.{rank}.fc.Dense.backward.0" in dump.data


def test_micro_batches_have_a_gradient_each(debug):
    debugger, shards = debug(level="L0"), two_ranks()
    model, wholes = shards.models[0], list(shards.wholes[0].values())
    debugger.start(shards.models)
    for scale in (1, 2):
        ms.value_and_grad(model, None, wholes)(Tensor(BATCH * scale))
    debugger.stop()
    debugger.step()
    first, second = (debug.dump().data[f"Cell.0.fc.Dense.parameters_grad.{number}"] for number in (0, 1))
    assert first["weight"][0]["Norm"] != second["weight"][0]["Norm"]


def test_gathered_parameters_are_not_held(debug):
    debugger, shards = debug(level="mix"), two_ranks(fresh=True)
    model, alive = shards.models[0], []
    for _ in range(2):
        debugger.start(shards.models)
        for _ in range(4):
            model(Tensor(BATCH))
            alive.append(weakref.ref(shards.wholes[0]["fc", "weight"]))
            del _
        gc.collect()
        assert sum(one() is not None for one in alive) <= 2
        debugger.stop()
        debugger.step()


def test_a_root_that_owns_gathered_parameters(debug):
    class Root(nn.Cell):
        def __init__(self):
            super().__init__()
            self.scale = ms.Parameter(Tensor(np.arange(1, 5, dtype=np.float32)), name="scale")
            self.act = nn.ReLU()

        def construct(self, x):
            return self.act(x * self.scale).sum()

    shards = FullyShard([Root(), Root()])
    debugger = debug(level="mix")
    debugger.start(shards.models[0])
    shards.models[0](Tensor(BATCH))
    debugger.stop()
    debugger.step()
    (entry,) = (entry for entry in debug.dump().data.values() if "model_parameters" in entry)
    assert entry["model_parameters"]["scale"]["shape"] == [4]


@pytest.mark.parametrize("measure", ["host", "device"])
def test_one_forward_one_backward_over_two_stages(debug, measure):
    batches = [Tensor(BATCH * scale) for scale in (1, 2, 3)]
    stages = Stage(1, 4), Stage(2, 5, is_last=True)
    bare = one_forward_one_backward(*stages, batches)
    debugger = debug(level="mix", measure=measure)
    debugger.start([*stages])
    watched = one_forward_one_backward(*stages, batches)
    debugger.stop()
    debugger.step()
    for ours, theirs in zip(watched, bare):
        np.testing.assert_array_equal(ours, theirs)
    data = debug.dump().data
    for stage in (0, 1):
        for number in range(3):
            assert f"Cell.{stage}.fc.Dense.forward.{number}" in data
            assert f"Cell.{stage}.fc.Dense.backward.{number}" in data
            assert set(data[f"Cell.{stage}.fc.Dense.parameters_grad.{number}"]) == {"weight", "bias"}

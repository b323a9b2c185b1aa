# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Parameters that are gathered for a forward, and pipelines: entries have the values that were used."""

from __future__ import annotations

import gc
import sys
import types
import weakref

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from probe.reading.dumps.query import overview
from probe.reading.dumps.run import open as open_run
from tests.sharded.rig import FullyShard, PipelineStage, Schedule, Stage, one_forward_one_backward

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
        assert {key: record["shape"] for key, record in entry["parameters"].items()} == {
            "weight": [6, 4],
            "bias": [6],
        }
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
    first, second = (
        debug.dump().data[f"Cell.0.fc.Dense.parameters_grad.{number}"] for number in (0, 1)
    )
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
            assert set(data[f"Cell.{stage}.fc.Dense.parameters_grad.{number}"]) == {
                "weight",
                "bias",
            }


def schedule(order):
    stages = Stage(1, 4), Stage(2, 5, is_last=True)
    return Schedule([PipelineStage(stage, index) for index, stage in enumerate(stages)], order)


def record_schedule(debug, order, **settings):
    """Record a step of a schedule and an update; return dump.json, and whether the bits are those of a bare run."""
    batches = [Tensor(BATCH * scale) for scale in (1, 2, 3)]
    bare, running = schedule(order).run(batches), schedule(order)
    last, debugger = running.stages[1], debug(**{"level": "mix", **settings})
    optimizer = nn.Momentum(last.submodule.trainable_params(), 0.1, 0.9)
    debugger.start([stage.submodule for stage in running.stages])
    watched = running.run(batches)
    optimizer(tuple(last.gradients[order[-1]]))
    debugger.stop()
    debugger.step()
    return debug.dump().data, all(
        np.array_equal(ours, theirs) for ours, theirs in zip(watched, bare)
    )


@pytest.fixture
def hyper_parallel(monkeypatch):
    """A schedule's package, as far as probe looks at it."""
    package = types.ModuleType("hyper_parallel")
    package.PipelineStage = PipelineStage
    monkeypatch.setitem(sys.modules, "hyper_parallel", package)


@pytest.mark.parametrize(
    "settings", [{"measure": "host"}, {"measure": "device"}, {"task": "tensor"}], ids=str
)
def test_entries_have_the_micro_batch_of_their_pass(debug, hyper_parallel, settings):
    before, order = {**vars(PipelineStage)}, (1, 0, 2)
    data, are_equal = record_schedule(debug, order, **settings)
    assert are_equal
    assert {**vars(PipelineStage)} == before
    for stage in (0, 1):
        for number, micro in enumerate(order):
            for direction in ("forward", "backward"):
                assert data[f"Cell.{stage}.fc.Dense.{direction}.{number}"]["micro"] == str(micro)
            gradients = data[f"Cell.{stage}.fc.Dense.parameters_grad.{number}"]
            assert {key: record["micro"] for key, (record,) in gradients.items()} == dict.fromkeys(
                gradients, str(micro)
            )
    relus = [
        data[f"Functional.relu.{number}.{way}"]["micro"]
        for way in ("forward", "backward")
        for number in range(6)
    ]
    assert relus == 2 * ["1", "0", "1", "2", "0", "2"]  # the first stage is one micro-batch ahead
    assert "micro" not in str(data["Cell.optimizer.Momentum.forward.0"])
    assert int not in {
        type(part) for entry in data.values() for part in entry.values()
    }  # msprobe's compare fails on it
    assert ", 3 micro-batches\n" in overview(open_run(debug.dump_path), 16, 0, "en")[0]


def test_a_finding_of_nan_check_has_its_micro_batch(debug, hyper_parallel):
    class Broken(Stage):
        def construct(self, x):
            return super().construct(x) + ops.log(x.sum() * 0)

    running = Schedule(
        [PipelineStage(Broken(1, 4), 0), PipelineStage(Stage(2, 5, is_last=True), 1)], (2, 0)
    )
    debugger = debug(task="nan_check", level="mix")
    debugger.start([stage.submodule for stage in running.stages])
    running.run([Tensor(BATCH)] * 3)
    debugger.stop()
    debugger.step()
    data = debug.dump().data
    assert data["Functional.log.0.forward"]["micro"] == "2"


def test_no_entry_has_a_micro_batch_without_a_schedule_that_tells_it(debug):
    data, are_equal = record_schedule(debug, (1, 0, 2))
    assert are_equal
    assert "micro" not in str(data)


def test_methods_of_a_stage_are_called_as_they_were(debug, hyper_parallel, monkeypatch):
    def drain(self, micro_index=-1, **rest):
        return micro_index, rest

    monkeypatch.setattr(PipelineStage, "drain", drain, raising=False)
    stage = PipelineStage(Stage(1, 4), 0)
    debugger = debug(level="mix")
    debugger.start(stage.submodule)
    assert stage.drain() == (-1, {})
    assert stage.drain(micro_index=2, last=True) == (2, {"last": True})
    assert stage.drain(3) == (3, {})
    with pytest.raises(TypeError, match="drain"):
        stage.drain(1, 2)
    debugger.stop()
    debugger.step()
    assert PipelineStage.drain is drain

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Pairs of experiments that differ in one thing from outside: `probe check` names it, and accuses no equal pair.

    python -m tests.programs.experiments [FOLDER]

Five small programs are recorded as they are, and with one thing changed each. A line for each pair: the thing, the exit
status, and the first line of the answer. The last line counts the pairs that were named, and the equal ones accused.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops

import probe

STEPS = 2


@dataclass
class Things:
    """The things from outside that a program takes; a change gives it others."""

    debugger: probe.PrecisionDebugger
    change: str = ""
    used: set[str] = field(default_factory=set)

    def of(self, name: str, value: Any, other: Any) -> Any:
        """Return a value, or the other one where this thing is changed."""
        self.used.add(name)
        return other if name == self.change else value


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def whole(*shape: int, high: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, shape).astype(np.int32)


def swapped(array: np.ndarray) -> np.ndarray:
    """Return the array with its first two items exchanged: no number of statistics changes."""
    return np.concatenate([array[1:2], array[:1], array[2:]])


def run(
    things: Things, net: Any, optimizer: Any, loss_of: Callable[..., Any], batches: Any
) -> None:
    """Train; the batches are the arguments of the function that is differentiated."""
    gradient = ms.value_and_grad(loss_of, None, optimizer.parameters)
    for batch in batches:
        things.debugger.start(net)
        _, gradients = gradient(*batch)
        optimizer(gradients)
        things.debugger.stop()
        things.debugger.step()


class Words(nn.Cell):
    """Embeds words and their positions; attends with a mask that is an argument."""

    def __init__(self, positions: ms.Tensor, temperature: float) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.query = nn.Dense(8, 8)
        self.head = nn.Dense(8, 20)
        self.drop = nn.Dropout(p=0.0)
        self.positions = positions
        self.temperature = temperature

    def construct(self, ids: ms.Tensor, mask: ms.Tensor) -> ms.Tensor:
        x = self.embed(ids) + self.positions
        scores = ops.matmul(self.query(x), x.swapaxes(1, 2)) / self.temperature
        scores = ops.masked_fill(scores, mask, -1e4)
        return self.head(self.drop(ops.matmul(ops.softmax(scores, -1), x)))


def words(things: Things) -> None:
    """Everything enters the function that is differentiated."""
    table = np.round(random(6, 8, seed=3) * 26) / 256  # sums are exact in each order
    table = things.of("positions in another order", table, swapped(table))
    temperature = things.of("temperature", 2.8, 2.0)
    net = Words(ms.Tensor(table), temperature)
    net.set_train(things.of("mode", True, False))
    if things.of("a frozen head", False, True):
        net.head.weight.requires_grad = False
    parameters = list(net.trainable_params())
    parameters = things.of("a parameter not in the optimizer", parameters, parameters[1:])
    optimizer = nn.Adam(parameters, things.of("learning rate", 0.01, 0.02))
    smoothing = things.of("label smoothing", 0.1, 0.0)
    ignored = things.of("ignored label", -100, 0)

    def loss_of(ids: ms.Tensor, mask: ms.Tensor, labels: ms.Tensor) -> ms.Tensor:
        logits = net(ids, mask).reshape(-1, 20)
        return ops.cross_entropy(
            logits, labels.reshape(-1), ignore_index=ignored, label_smoothing=smoothing
        )

    def batch(step: int) -> tuple[ms.Tensor, ...]:
        ids = whole(4, 6, high=20, seed=step)
        ids = things.of("two samples exchanged", ids, swapped(ids))
        labels = np.roll(whole(4, 6, high=20, seed=step), -1, 1)
        labels = things.of("labels not moved by one", labels, whole(4, 6, high=20, seed=step))
        mask = np.triu(np.ones((4, 6, 6), bool), 1)
        mask = things.of("mask of the other side", mask, np.tril(np.ones((4, 6, 6), bool), -1))
        return ms.Tensor(ids), ms.Tensor(mask), ms.Tensor(labels)

    steps = things.of("order of the batches", [0, 1], [1, 0])
    run(things, net, optimizer, loss_of, map(batch, steps))


class Classes(nn.Cell):
    """Classifies images."""

    def __init__(self, mean: float) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Dense(4 * 36, 3)
        self.mean = mean

    def construct(self, images: ms.Tensor) -> ms.Tensor:
        x = ops.relu(self.norm(self.conv(images - self.mean)))
        return self.head(x.reshape(x.shape[0], -1))


def classes(things: Things) -> None:
    """Labels and weights are values of a closure."""
    net = Classes(things.of("mean of the images", 0.1, 0.5))
    net.set_train()
    if things.of("BatchNorm in evaluation", False, True):
        net.norm.set_train(False)
    weights = np.array([1.0, 2.0, 0.5], np.float32)
    weights = ms.Tensor(things.of("weights of classes exchanged", weights, weights[::-1].copy()))
    optimizer = nn.Momentum(
        net.trainable_params(), 0.1, things.of("momentum", 0.9, 0.0), weight_decay=1e-4
    )
    drawn: dict[str, ms.Tensor] = {}

    def loss_of(images: ms.Tensor) -> ms.Tensor:
        return ops.cross_entropy(net(images), drawn["labels"], weight=weights)

    def batch(step: int) -> tuple[ms.Tensor, ...]:
        images = random(6, 1, 6, 6, seed=step)
        noise = random(6, 1, 6, 6, seed=step + things.of("seed of the noise", 50, 60))
        images = things.of("images between 0 and 1", images, images / 4) + 0.1 * noise
        if things.of("one other sample", False, True):
            images[3] = 0
        labels = whole(6, high=3, seed=step)
        labels = things.of("labels of a closure", labels, (labels + 1) % 3)
        labels = things.of("labels of a closure exchanged", labels, labels[::-1].copy())
        drawn["labels"] = ms.Tensor(labels)
        return (ms.Tensor(images),)

    run(things, net, optimizer, loss_of, map(batch, range(STEPS)))


class Policy(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dense(5, 8)
        self.last = nn.Dense(8, 3)

    def construct(self, states: ms.Tensor) -> ms.Tensor:
        return self.last(ops.tanh(self.first(states)))


def policy(things: Things) -> None:
    """The arguments stand in a dictionary, and numbers are arguments too."""
    net = Policy()
    net.set_train()
    optimizer = nn.SGD(net.trainable_params(), 0.05)
    clip = things.of("range of the clip", 0.2, 0.3)

    def loss_of(batch: dict[str, ms.Tensor], entropy: float) -> ms.Tensor:
        logs = ops.log_softmax(net(batch["states"]), -1)
        chosen = ops.gather_elements(logs, 1, batch["actions"])
        ratio = ops.exp(chosen - batch["old"])
        advantages = batch["advantages"]
        held = ops.clamp(ratio, 1 - clip, 1 + clip) * advantages
        gain = ops.minimum(ratio * advantages, held)
        return -gain.mean() + entropy * (ops.exp(logs) * logs).sum(-1).mean()

    def batch(step: int) -> tuple[Any, ...]:
        advantages = random(8, 1, seed=step + 10)
        normal = (advantages - advantages.mean()) / advantages.std()
        actions = whole(8, 1, high=3, seed=step + 20)
        old = random(8, 1, seed=step + 30) * 0.1 - 1
        found = {
            "states": random(8, 5, seed=step + things.of("seed of the states", 0, 9)),
            "actions": things.of("actions exchanged", actions, actions[::-1].copy()),
            "old": things.of("old probabilities", old, old * 0),
            "advantages": things.of("advantages not normalised", normal, advantages),
        }
        weight = things.of("weight of the entropy", 0.01, 0.1)
        return {name: ms.Tensor(value) for name, value in found.items()}, weight

    run(things, net, optimizer, loss_of, map(batch, range(STEPS)))


class Denoiser(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Embedding(10, 8)
        self.body = nn.SequentialCell(nn.Dense(8, 16), nn.SiLU(), nn.Dense(16, 8))

    def construct(self, x: ms.Tensor, time: ms.Tensor) -> ms.Tensor:
        return self.body(x + self.time(time))


def denoiser(things: Things) -> None:
    """A diffusion model: the noise is drawn by numpy, its schedule is a table."""
    net = Denoiser()
    net.set_train()
    optimizer = nn.AdamWeightDecay(
        net.trainable_params(), 0.01, weight_decay=things.of("weight decay", 0.01, 0.0)
    )
    kept = np.linspace(31, 4, 10, dtype=np.float32) / 32  # sums are exact in each order
    kept = ms.Tensor(things.of("schedule read backwards", kept, kept[::-1].copy()))
    target = things.of("target of the loss", "noise", "image")

    def loss_of(images: ms.Tensor, times: ms.Tensor, noise: ms.Tensor) -> ms.Tensor:
        level = ops.gather(kept, times, 0).reshape(-1, 1)
        guess = net(level.sqrt() * images + (1 - level).sqrt() * noise, times)
        wanted = noise if target == "noise" else images
        return ops.mse_loss(guess, wanted)

    def batch(step: int) -> tuple[ms.Tensor, ...]:
        images = random(8, 8, seed=step)
        times = whole(8, high=10, seed=step + 5)
        times = things.of("times of the noise", times, whole(8, high=10, seed=step + 6))
        noise = random(8, 8, seed=step + 7)
        noise = things.of("noise of the images", noise, random(8, 8, seed=step + 8))
        images = things.of("images in float16", images, images.astype(np.float16))
        return ms.Tensor(images), ms.Tensor(times), ms.Tensor(noise)

    run(things, net, optimizer, loss_of, map(batch, range(STEPS)))


class Graph(nn.Cell):
    def __init__(self, edges: ms.Tensor) -> None:
        super().__init__()
        self.edges = edges
        self.first = nn.Dense(4, 8)
        self.last = nn.Dense(8, 1)

    def construct(self, nodes: ms.Tensor) -> ms.Tensor:
        sent = ops.gather(self.first(nodes), self.edges[0], 0)
        summed = ops.zeros((6, 8), ms.float32).index_add(0, self.edges[1], sent)
        return self.last(ops.relu(summed)).squeeze(-1)


def graph(things: Things) -> None:
    """Tables of integers: their numbers do not tell their order."""
    edges = np.array([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]], np.int32)
    edges = things.of("direction of the edges", edges, edges[::-1].copy())
    net = Graph(ms.Tensor(edges))
    net.set_train()
    groups = [
        {"params": net.first.trainable_params(), "lr": things.of("rate of a group", 0.01, 0.03)},
        {"params": net.last.trainable_params(), "lr": 0.02},
    ]
    optimizer = nn.Adam(groups, 0.01, beta2=things.of("beta2", 0.999, 0.99))
    known = np.array([1, 1, 1, 0, 0, 1], np.float32)
    known = ms.Tensor(things.of("known nodes", known, 1 - known))
    factor = things.of("factor of the loss", 1.0, 0.5)
    loss_cell = nn.HuberLoss(delta=things.of("delta of the loss", 1.0, 0.3))

    def loss_of(nodes: ms.Tensor, wanted: ms.Tensor) -> ms.Tensor:
        return loss_cell(net(nodes) * known, wanted * known) * factor

    def batch(step: int) -> tuple[ms.Tensor, ...]:
        wanted = random(6, seed=step + 40)
        wanted = things.of("wanted values exchanged", wanted, swapped(wanted))
        return ms.Tensor(random(6, 4, seed=step)), ms.Tensor(wanted)

    run(things, net, optimizer, loss_of, map(batch, range(STEPS)))


def adversary(scale: float) -> Callable[[Things], None]:
    """Return a program whose generator is another one by a factor, and gives its images to the discriminator."""

    def program(things: Things) -> None:
        maker = nn.Dense(3, 4)
        judge = nn.Dense(4, 1)
        maker.weight.set_data(maker.weight * scale)
        optimizer = nn.SGD(judge.trainable_params(), 0.1)
        gradient = ms.value_and_grad(
            lambda images: judge(images).mean(), None, optimizer.parameters
        )
        for step in range(STEPS):
            things.debugger.start([maker, judge])
            made = maker(ms.Tensor(random(2, 3, seed=step)))
            _, gradients = gradient(ops.stop_gradient(made))
            optimizer(gradients)
            things.debugger.stop()
            things.debugger.step()

    return program


PROGRAMS = (words, classes, policy, denoiser, graph)


def record(
    program: Callable[[Things], None], folder: Path, change: str = "", level: str = "mix"
) -> Things:
    """Record a program with one thing changed."""
    ms.set_seed(1)
    np.random.seed(1)
    debugger = probe.PrecisionDebugger(level=level, task="statistics", dump_path=str(folder))
    things = Things(debugger, change)
    program(things)
    debugger.close()
    return things


def answers(folder: Path) -> Iterator[tuple[str, str, probe.Check]]:
    """Yield (program, thing, answer of check) of each pair; thing "" where both are equal."""
    for program in PROGRAMS:
        name = program.__name__
        golden = folder / name
        things = record(program, golden)
        for again in range(3):
            record(program, folder / f"{name}-{again}")
            yield name, "", probe.check(golden, folder / f"{name}-{again}")
        for number, thing in enumerate(sorted(things.used)):
            other = folder / f"{name}-changed-{number}"
            record(program, other, thing)
            yield name, thing, probe.check(golden, other)


def main() -> int:
    named = accused = pairs = equal = 0
    with contextlib.ExitStack() as stack:
        chosen = sys.argv[1:] or [stack.enter_context(tempfile.TemporaryDirectory())]
        for program, thing, found in answers(Path(chosen[0])):
            first = [*found.lines(), *map(str, found.unknown), ""][0]
            print(f"{program}: {thing or 'equal'}: {found.status}: {first}", flush=True)
            pairs += bool(thing)
            equal += not thing
            named += bool(thing) and bool(found.status)
            accused += not thing and bool(found.status)
    print(f"{named} of {pairs} named, {accused} of {equal} equal pairs accused")
    return int(named < pairs or accused > 0)


if __name__ == "__main__":
    sys.exit(main())

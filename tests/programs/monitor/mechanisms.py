# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Faults whose mechanism is known, planted in a small GPT: does the mechanism's rule alarm before the loss's?

    python -m tests.programs.monitor.mechanisms [--steps 2000] [--only float8] [--series]

Four faults: scores of attention in float8, a learning rate that is too large, a router without balance loss, and an
embedding in half precision. Then three healthy trainings, which must raise no alarm. The text is that of the documents.
Exit status 1 when a fault's mechanism is not told first, or a healthy training raises an alarm.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from probe import PrecisionDebugger
from probe.series.series import open_series
from tests.support import nets
from tests.support.paths import ROOT

MECHANISMS = (
    "attention entropy",
    "attention logits",
    "expert",
    "expert takes all",
    "stable rank",
    "table update",
)
#: rules that look at the loss
OF_LOSS = ("loss",)
VOCABULARY, LENGTH, BATCH = 64, 16, 8


def text():
    """Return the documents as numbers of letters below the size of the vocabulary."""
    written = "".join(path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
    letters = {
        letter: place for place, letter in enumerate(sorted(set(written), key=written.count)[::-1])
    }
    return np.array([min(letters[letter], VOCABULARY - 1) for letter in written], np.int32)


class Float8Attention(nets.Attention):
    """Scores are rounded to three bits, and above 448 they are NaN, as in float8_e4m3fn. The gradient ignores it."""

    def construct(self, x, mask):
        batch, length, width = x.shape
        split = (batch, length, self.heads, self.size)
        q, k, v = (
            layer(x).reshape(split).transpose(0, 2, 1, 3) for layer in (self.q, self.k, self.v)
        )
        scores = ops.matmul(q, k.swapaxes(-1, -2)) * self.size**-0.5
        step = ops.exp2(ops.floor(ops.log2(ops.abs(scores) + 1e-9)) - 3)
        rounded = ops.round(scores / step) * step
        rounded = ops.where(ops.abs(scores) > 448, ops.full_like(scores, float("nan")), rounded)
        weights = ops.softmax(scores + ops.stop_gradient(rounded - scores) + mask, -1)
        return self.o(ops.matmul(weights, v).transpose(0, 2, 1, 3).reshape(batch, length, width))


class Experts(nn.Cell):
    """Four experts; each token takes the ``top`` ones. ``balance`` is the sum of products of tokens and gates.

    ``top`` of 2 chooses by normalized inputs, as trainings that go well do.
    """

    def __init__(self, width, top, count=4):
        super().__init__()
        self.norm = nn.LayerNorm((width,)) if top > 1 else nn.Identity()
        self.router = nn.Dense(width, count, has_bias=False)
        self.experts = nn.CellList([nn.Dense(width, width) for _ in range(count)])
        self.count, self.top, self.balance = count, top, None

    def construct(self, x):
        gates = ops.softmax(self.router(self.norm(x)), -1)
        least = ops.sort(gates, -1)[0][..., -self.top : self.count - self.top + 1]
        chosen = ops.stop_gradient((gates >= least).astype(ms.float32))
        tokens, shares = (part.reshape(-1, self.count).mean(axis=0) for part in (chosen, gates))
        self.balance = (tokens * shares).sum() * self.count
        parts = [
            expert(x) * (gates * chosen)[..., place : place + 1]
            for place, expert in enumerate(self.experts)
        ]
        return x + sum(parts[1:], parts[0])


class Block(nets.Block):
    """A block whose attention or experts are others."""

    def __init__(self, width, heads, attention, experts):
        super().__init__(width, heads)
        self.attention = attention(width, heads)
        self.experts = Experts(width, experts) if experts else None

    def construct(self, x, mask):
        x = super().construct(x, mask)
        return x if self.experts is None else self.experts(x)


class Gpt(nets.Gpt):
    """A GPT with such blocks."""

    def __init__(self, attention, experts):
        super().__init__(VOCABULARY, 32, 2, 2, LENGTH)
        self.blocks = nn.CellList([Block(32, 2, attention, experts) for _ in range(2)])


class Training:
    """A GPT on the text of the documents.

    Args:
        rate: the learning rate after 100 steps of warm-up.
        attention: makes the attention of a block.
        experts: adds four experts to each block, of which each token takes so many.
        balance: the weight of their balance loss.
        half: keeps the table of the embedding in float16.
        decay: the learning rate falls as a cosine.
    """

    def __init__(
        self,
        steps,
        rate=1e-3,
        attention=nets.Attention,
        experts=0,
        balance=0.0,
        half=False,
        decay=True,
        seed=1,
    ):
        ms.set_seed(seed)
        self.random, self.text = np.random.default_rng(seed), text()
        self.net, self.balance = Gpt(attention, experts), balance
        self.experts = [block.experts for block in self.net.blocks] if experts else []
        if half:
            table = self.net.tokens.embedding_table
            self.net.tokens.embedding_table = Parameter(table.astype(ms.float16), name=table.name)
        rates = [
            rate * min((step + 1) / 100, self._cosine(step, steps) if decay else 1)
            for step in range(steps + 1)
        ]
        self.optimizer = nn.Adam(self.net.trainable_params(), rates)
        cross = nn.CrossEntropyLoss()

        def loss(x, y):
            found = cross(self.net(x).astype(ms.float32), y.reshape(-1))
            return (
                found + self.balance * sum(layer.balance for layer in self.experts)
                if self.balance
                else found
            )

        self.grad = ms.value_and_grad(loss, None, self.optimizer.parameters)

    @staticmethod
    def _cosine(step, steps):
        return 0.55 + 0.45 * math.cos(math.pi * step / steps)

    def step(self):
        starts = self.random.integers(0, len(self.text) - LENGTH - 1, BATCH)
        rows = np.stack([self.text[start : start + LENGTH + 1] for start in starts])
        loss, gradients = self.grad(Tensor(rows[:, :-1]), Tensor(rows[:, 1:]))
        self.optimizer(gradients)
        return loss


FAULTS = {
    "scores of attention in float8": lambda n: Training(
        n, 5e-2, attention=Float8Attention, decay=False
    ),
    "learning rate too large": lambda n: Training(n, 5e-1, decay=False),
    "router without balance loss": lambda n: Training(n, 3e-3, experts=1),
    "embedding in half precision": lambda n: Training(n, 3e-3, half=True),
}
HEALTHY = {
    "healthy: warm-up and cosine": lambda n: Training(n),
    "healthy: experts with balance loss": lambda n: Training(n, experts=2, balance=0.1),
    "healthy: a constant rate": lambda n: Training(n, 2e-3, decay=False, seed=2),
}


def train(make, steps, until_loss, shows_series, keep):
    """Return the alarms; a fault ends with the first alarm about the loss."""
    training, alarms = make(steps), []
    with tempfile.TemporaryDirectory() as made:
        folder = keep or made
        config = Path(folder) / "config.json"
        config.write_text(
            json.dumps({"task": "monitor", "dump_path": f"{folder}/watched", "snapshot": False})
        )
        debugger = PrecisionDebugger(config_path=str(config))
        debugger.on_alarm(alarms.append)
        for _ in range(steps):
            debugger.start(training.net)
            training.step()
            debugger.stop()
            debugger.step()
            if until_loss and any(alarm.series in OF_LOSS for alarm in alarms):
                break
        debugger.close()
        if shows_series:
            show(f"{folder}/watched")
    return alarms


def show(folder):
    (rank,) = open_series(folder)
    for name in rank.names:
        ends = ("entropy", "logits", "largest", "smallest", "rank", "ratio")
        if name == "loss" or name.rpartition(".")[2].rpartition("_")[2] in ends:
            values = [f"{value:.3g}" for value in rank[name][1]]
            each = max(len(values) // 20, 1)
            print(f"    {name}: {' '.join(values[::each])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--only", default="", help="the trainings with this text in their names")
    parser.add_argument("--series", action="store_true", help="print what was measured")
    parser.add_argument("--keep", default="", help="a folder for what the monitor writes")
    given = parser.parse_args()
    # one thread, and nothing asynchronous: threads that wait for each other take ten times as long on a busy machine
    ms.set_context(
        mode=ms.PYNATIVE_MODE,
        pynative_synchronize=True,
        inter_op_parallel_num=1,
        runtime_num_threads=1,
    )
    ms.set_device("CPU")
    wrong = 0
    for name, make in {**FAULTS, **HEALTHY}.items():
        if given.only not in name:
            continue
        alarms = train(make, given.steps, name in FAULTS, given.series, given.keep)
        mechanism = next((alarm for alarm in alarms if alarm.rule in MECHANISMS), None)
        loss = next((alarm for alarm in alarms if alarm.series in OF_LOSS), None)
        if name in FAULTS:
            is_right = mechanism is not None and (loss is None or mechanism.step < loss.step)
            told = [
                f"{alarm.rule} of {alarm.series} in step {alarm.step}" if alarm else "none"
                for alarm in (mechanism, loss)
            ]
            print(f"{name}: mechanism: {told[0]}; loss: {told[1]}", flush=True)
        else:
            is_right = not alarms
            print(f"{name}: {len(alarms)} alarms in {given.steps} steps", flush=True)
        for alarm in alarms if given.series or name in HEALTHY else ():
            print(f"    {alarm.rule}: {alarm.series}: {alarm.sentence}")
        wrong += not is_right
    print(f"{wrong} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Five healthy trainings under the monitor, 2,000 steps each: how many alarms are raised?

    python -m tests.programs.monitor.healthy [--steps 2000] [--only gan]

Warm-up and cosine, dropout and augmentation, momentum with batches of two, dynamic loss scaling, and a GAN. Exit status
1 with an alarm.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path

import mindspore as ms
from mindspore import nn

from probe import PrecisionDebugger
from tests.monitor.trainings import HEALTHY, Scaled, Training


def _cosine(steps):
    return [
        1e-3 * min((step + 1) / 100, 0.5 * (1 + math.cos(math.pi * step / steps)))
        for step in range(steps + 1)
    ]


def _small_batches(steps):
    training = Training(2, lambda parameters: nn.Momentum(parameters, 0.003, 0.9))
    training.change = lambda step, x, y: (x[:2], y[:2])
    return training


class _Scaling(Scaled):
    """Dynamic loss scaling that goes well; the scale doubles every 50 steps up to its limit."""

    def step(self, step):
        loss, gradients = self.grad(*self.batch(step))
        is_finite = ms.amp.all_finite(gradients)
        if is_finite:
            self.optimizer(self.scaler.unscale(gradients))
        self.scaler.adjust(is_finite)
        return loss


TRAININGS = {
    "warm-up and cosine": lambda steps: Training(
        1, lambda p: nn.AdamWeightDecay(p, _cosine(steps), weight_decay=0.01)
    ),
    "dropout and augmentation": lambda steps: HEALTHY["dropout and augmentation"](),
    "batches of two": _small_batches,
    "dynamic loss scaling": lambda steps: _Scaling(4),
    "gan": lambda steps: HEALTHY["gan"](),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--only", default="", help="the trainings with this text in their names")
    given = parser.parse_args()
    chosen = {name: make for name, make in TRAININGS.items() if given.only in name}
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    count = 0
    for name, make in chosen.items():
        training = make(given.steps)
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "config.json"
            config.write_text(
                json.dumps({"task": "monitor", "dump_path": f"{folder}/watched", "snapshot": False})
            )
            debugger = PrecisionDebugger(config_path=str(config))
            alarms = []
            debugger.on_alarm(alarms.append)
            for step in range(given.steps):
                debugger.start(training.net)
                training.step(step)
                debugger.stop()
                debugger.step()
            debugger.close()
        print(
            f"{name}: {len(alarms)} alarms",
            *(f"    {a.rule}: {a.series}: {a.sentence}" for a in alarms),
            sep="\n",
            flush=True,
        )
        count += len(alarms)
    print(f"{count} alarms in {len(chosen) * given.steps} steps")
    return int(bool(count))


if __name__ == "__main__":
    sys.exit(main())

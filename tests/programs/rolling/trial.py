# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Faults that begin in a random step of a training with rolling records, and healthy trainings.

    python -m tests.programs.rolling.trial [--only perceptron] [--healthy | --faults | --pairs | --bits]

30 faults: the rules must name the call of 27, within two rounds of the step in which it passes the noise. 20 healthy
trainings of 2,000 steps: one alarm at most. 20 pairs of runs, of which one has a difference from some step on: the call
and the round of 18 are named. 300 steps have the bits of a bare training. Exit status 1 else. A change of a gain by
less than a factor of three is noise, as learning makes such changes too.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

from probe import PrecisionDebugger
from probe.reading.report.row_pairs import compare_rows
from probe.series.series import open_series
from tests.programs.rolling.trainings import KINDS, Fault, Training

EVERY = 20
ROUND = 19
HEALTHY_STEPS = 2000
BIT_STEPS = 300
RANDOM = ("perceptron",)  # a dropout on CPU does not repeat itself
SEEDS = (1, 2)
NOISE = math.log(3)
_NAN = Tensor(np.array(math.nan, np.float32))


def _times(factor):
    return lambda result, age: result * factor**age


def _one_nan(result, age):
    mask = np.zeros(result.shape, np.float32)
    mask.reshape(-1)[:1] = math.nan
    return result + Tensor(mask).astype(result.dtype)


#: fault -> its effect, and the number of steps after its begin at which it passes the noise
EFFECTS = {
    "grows 1 % a step": (_times(1.01), math.ceil(NOISE / math.log(1.01))),
    "drifts by -1 % a step": (_times(1 / 1.01), math.ceil(NOISE / math.log(1.01))),
    "kernel four times too large": (lambda result, age: result * 4, 0),
    "kernel five times too small": (lambda result, age: result / 5, 0),
    "zeros": (lambda result, age: result * 0, 0),
    "one NaN": (_one_nan, 0),
}
RANGE = "leaves float16"


def faults(count=30):
    """Return (kind, seed, fault, function): each kind in turn, the last ones in float16."""
    chooser = random.Random(7)
    places = [(kind, name) for kind, (_, _, names) in KINDS.items() for name in names]
    found = []
    for place in range(count - 3):
        kind, name = places[place % len(places)]
        found.append((kind, place, list(EFFECTS)[place % len(EFFECTS)], name))
    return [*found, *(("half", seed, RANGE, chooser.choice(["relu", "tanh"])) for seed in range(3))]


def watched(folder, kind, seed, steps, fault=None, begin=0):
    """Train under rolling records; return the alarms, and the first step with an output near the end of float16."""
    training = Training(kind, seed, steps)
    config = Path(folder) / "config.json"
    settings = {"task": "monitor", "level": "mix", "dump_path": f"{folder}/watched", "quiet": True}
    config.write_text(json.dumps({**settings, "monitor": {"rolling": EVERY, "interval": 1000}}))
    debugger = PrecisionDebugger(config_path=str(config))
    alarms = []
    debugger.on_alarm(alarms.append)
    try:
        for step in range(steps):
            if fault is not None:
                fault.begin_step(step - begin)
            debugger.start(training.net)
            training.step(step)
            debugger.stop()
            debugger.step()
    finally:
        debugger.close()
        if fault is not None:
            fault.remove()
    return alarms


class Peak:
    """Multiplies by 1.05 a step, and notes the first step in which nine tenths of float16 are used."""

    def __init__(self):
        self.first = None

    def __call__(self, result, age):
        grown = result * 1.05**age
        peak = float(ops.abs(grown).max())
        if self.first is None and peak >= 0.9 * 65504:
            self.first = age
        return grown


def look_at_faults(chosen):
    """Return how many faults are named in time, and how many there are."""
    chooser = random.Random(1)
    named = 0
    for kind, seed, effect, name in chosen:
        begin = chooser.randrange(300, 400)
        peak = Peak()
        change, passes = EFFECTS.get(effect, (peak, 0))
        fault = Fault(name, change)
        steps = begin + (300 if effect == RANGE else passes + 2 * ROUND + 1)
        with tempfile.TemporaryDirectory() as folder:
            alarms = watched(folder, kind, seed, steps, fault, begin)
        passed = begin + (
            (peak.first if peak.first is not None else 10**6) if effect == RANGE else passes
        )
        own = [alarm for alarm in alarms if f".{name}." in alarm.series]
        in_time = [alarm for alarm in own if begin <= alarm.step <= passed + 2 * ROUND]
        named += bool(in_time)
        first = in_time[0] if in_time else (alarms or [None])[0]
        told = "-" if first is None else f"{first.rule}: {first.series} in step {first.step}"
        others = sum(alarm not in own for alarm in alarms)
        print(
            f"{'named ' if in_time else 'MISSED'} {kind} {seed}: {name} {effect} from {begin}, passes {passed}: "
            f"{told}; others: {others}",
            flush=True,
        )
    return named, len(chosen)


def look_at_healthy(kinds):
    """Return the number of alarms of healthy trainings."""
    count = 0
    for seed in SEEDS:
        for kind in kinds:
            with tempfile.TemporaryDirectory() as folder:
                alarms = watched(folder, kind, seed, HEALTHY_STEPS)
            count += len(alarms)
            print(f"healthy {kind} {seed}: {len(alarms)} alarms", flush=True)
            for alarm in alarms:
                print(f"    {alarm.rule}: {alarm.series}: {alarm.sentence}", flush=True)
    return count


#: kind, function and factor of the difference; a dropout on CPU does not repeat itself, so no pair has one
PAIRS = [
    (kind, name, factor)
    for place, (kind, name) in enumerate(
        (kind, name)
        for kind, (_, _, names) in KINDS.items()
        for name in names
        if kind != "perceptron"
    )
    for factor in ((1.01, 0.7) if place % 2 else (1.002,))
][:20]


def rolled(folder, kind, steps, fault=None, begin=0):
    """Train under rolling records of statistics; return the folder."""
    training = Training(kind, 3, steps)
    config = Path(f"{folder}.json")
    settings = {"task": "statistics", "level": "mix", "dump_path": str(folder), "quiet": True}
    config.write_text(json.dumps({**settings, "statistics": {"rolling": EVERY}}))
    debugger = PrecisionDebugger(config_path=str(config))
    for step in range(steps):
        if fault is not None:
            fault.begin_step(step - begin)
        debugger.start(training.net)
        training.step(step)
        debugger.stop()
        debugger.step()
    debugger.close()
    if fault is not None:
        fault.remove()
    return open_series(str(folder))


def look_at_pairs(chosen):
    """Return how many pairs are named with their call and round."""
    chooser = random.Random(3)
    named = 0
    for kind, name, factor in chosen:
        begin = chooser.randrange(50, 70)
        steps = begin + 2 * ROUND + 5
        with tempfile.TemporaryDirectory() as folder:
            golden = rolled(Path(folder, "a"), kind, steps)
            fault = Fault(name, lambda result, age, factor=factor: result * factor)
            found = compare_rows(golden, rolled(Path(folder, "b"), kind, steps, fault, begin)).call
        in_round = found is not None and begin <= found.first < begin + ROUND
        is_named = in_round and f".{name}." in found.entry
        named += is_named
        told = "-" if found is None else found.sentence
        print(
            f"{'named ' if is_named else 'MISSED'} pair {kind}: {name} x {factor} from {begin}: {told}",
            flush=True,
        )
    return named, len(chosen)


def bits(kind, folder=None, **own):
    """Train; return the bytes of all losses, and of the parameters at the end."""
    training = Training(kind, 5, BIT_STEPS)
    debugger = None
    if folder is not None:
        config = Path(folder) / "config.json"
        settings = {"task": "statistics", "level": "mix", "dump_path": f"{folder}/dump"}
        config.write_text(json.dumps({**settings, "quiet": True, "statistics": own}))
        debugger = PrecisionDebugger(config_path=str(config))
    found = []
    for step in range(BIT_STEPS):
        if debugger is not None:
            debugger.start(training.net)
        found.append(training.step(step).asnumpy().tobytes())
        if debugger is not None:
            debugger.stop()
            debugger.step()
    if debugger is not None:
        debugger.close()
    return found + [item.asnumpy().tobytes() for item in training.net.trainable_params()]


def look_at_bits(kinds):
    """Return how many trainings keep their bits under rolling records."""
    kept = 0
    for kind in kinds:
        bare = bits(kind)
        for own in ({"rolling": EVERY}, {"rolling": EVERY, "summary_mode": "md5"}, {"budget": 0.1}):
            with tempfile.TemporaryDirectory() as folder:
                is_kept = bits(kind, folder, **own) == bare
            kept += is_kept
            print(f"{'equal' if is_kept else 'DIFFERS'} {kind} {own}", flush=True)
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="the trainings with this text in their names")
    parser.add_argument("--healthy", action="store_true")
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--bits", action="store_true")
    given = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    is_right = True
    every = not (given.healthy or given.faults or given.pairs or given.bits)
    if every or given.faults:
        named, count = look_at_faults([item for item in faults() if given.only in item[0]])
        print(f"{named} of {count} faults named in time")
        is_right &= named >= 0.9 * count
    if every or given.pairs:
        named, count = look_at_pairs([item for item in PAIRS if given.only in item[0]])
        print(f"{named} of {count} pairs named")
        is_right &= named >= 0.9 * count
    if every or given.bits:
        kinds = [kind for kind in KINDS if given.only in kind and kind not in RANDOM]
        kept = look_at_bits(kinds)
        print(f"{kept} of {3 * len(kinds)} trainings keep their bits")
        is_right &= kept == 3 * len(kinds)
    if every or given.healthy:
        alarms = look_at_healthy([kind for kind in KINDS if given.only in kind])
        print(f"{alarms} alarms in healthy trainings")
        is_right &= alarms <= 1
    return int(not is_right)


if __name__ == "__main__":
    sys.exit(main())

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trains every net of ``interference`` bare and under probe and compares all bits. Prints one JSON line.

    python -m tests.programs.equality [--asynchronous] [--nets gated,views] [--steps 5] [--repeats 1]

The word "guard" among the tasks stands for task statistics under the guard of saved tensors, which finds nothing,
"golden" for a training beside a golden run, which writes nothing.
Every bare training is repeated, and every training under probe runs ``--repeats`` times: all have one result.

A program of its own, because whether PyNative runs asynchronously is settled by a process's first operation.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--asynchronous", action="store_true")
parser.add_argument("--nets", default="")
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--repeats", type=int, default=1)
parser.add_argument("--tasks", default="statistics,tensor,structure,guard,golden")
parser.add_argument("--optimizer", default="states", choices=("off", "scalars", "states"))
arguments = parser.parse_args()

if hasattr(os, "sched_setaffinity"):  # not on macOS
    # where there are several, kernels divide their work; pytest may have kept this program on one
    os.sched_setaffinity(0, range(os.cpu_count()))

import mindspore as ms

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
if not arguments.asynchronous:
    ms.set_context(pynative_synchronize=True)

from probe import PrecisionDebugger
from tests.support import interference, nets
from tests.support.training import train

STEPS = arguments.steps


def main():
    builders = {
        **interference.NETS,
        **{name: lambda name=name: nets.build(name) for name in ("lenet", "gpt", "digits")},
    }
    chosen = [name for name in arguments.nets.split(",") if name] or list(builders)
    compared, numbers, different, unsteady, lost = 0, 0, [], [], []
    for name in chosen:
        bare = train(builders[name](), STEPS)
        if any(
            train(builders[name](), STEPS) != bare for _ in range(max(1, arguments.repeats - 1))
        ):
            unsteady.append(name)
            continue
        for level in ("L0", "L1", "mix"):
            for task in arguments.tasks.split(",") * arguments.repeats:
                with tempfile.TemporaryDirectory() as folder:
                    dump = os.path.join(folder, "dump")
                    config = Path(folder) / "config.json"
                    settings = {"dump_path": dump, "level": level, "optimizer": arguments.optimizer}
                    if task == "golden":
                        config.write_text(json.dumps({**settings, "dump_path": f"{dump}/golden"}))
                        train(builders[name](), STEPS, PrecisionDebugger(config_path=str(config)))
                        settings |= {"golden": f"{dump}/golden", "dump_path": f"{dump}/mine"}
                    else:
                        settings |= {"saved_tensors": True} if task == "guard" else {"task": task}
                    config.write_text(json.dumps(settings))
                    watched = train(
                        builders[name](), STEPS, PrecisionDebugger(config_path=str(config))
                    )
                    dump = f"{dump}/golden" if task == "golden" else dump
                    steps = len(list(Path(dump).glob("step*/rank/dump.json")))
                    files = [
                        *Path(folder).rglob("findings.jsonl"),
                        *Path(folder).rglob("golden.json"),
                    ]
                    found = [path.read_text() for path in files]
                    errors = found + [
                        path.read_text() for path in Path(folder).rglob("dump_error_info.log")
                    ]
                compared += 1
                numbers += sum(map(len, watched))
                if watched != bare:
                    different.append(f"{name}-{level}-{task}")
                if errors or steps != STEPS:
                    lost.append((f"{name}-{level}-{task}", steps, errors[:1]))
    result = {
        "compared": compared,
        "tensors": numbers,
        "different": different,
        "unsteady": unsteady,
        "lost": lost,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

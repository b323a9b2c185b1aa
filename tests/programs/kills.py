# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Children that record calls and are killed at random moments. Prints one JSON line about what recover found.

    python -m tests.programs.kills [--kills 50] [--seed 0] [--journal batch] [--keep DIR]

A child tells through a pipe which calls have returned, and the parent kills it after some of them. The children
are forked from a process that has imported MindSpore and run no operation. With the setting "journal": "each" no call
is lost that has returned; with "batch" none but those of the last batch.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import tempfile
from pathlib import Path

import mindspore as ms
import numpy as np

from probe import PrecisionDebugger
from probe.reading.dumps.journal_reader import recover
from probe.store.documents import MOST_WAITING
from probe.store.file_names import ARRAYS

COUNTS = (10, 100, 1000, 5000)


def child(folder, journal, task, count, rewrite, told):
    """Record ``count`` calls, telling of each that has returned; every ``rewrite`` calls the documents are written."""
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    config = Path(folder, "config.json")
    config.write_text(
        json.dumps({"task": task, "dump_path": folder, "level": "L1", "journal": journal})
    )
    config.chmod(0o640)
    debugger = PrecisionDebugger(config_path=str(config))
    x = ms.Tensor(np.arange(8, dtype=np.float32))
    debugger.start()
    for i in range(count):
        x + float(i)
        os.write(told, b".")
        if rewrite and i % rewrite == rewrite - 1:
            debugger.stop()
            debugger.start()
    debugger.stop()
    os.write(told, b"e")


def files_of(data):
    """Return the names of the arrays in these entries."""
    return re.findall(r'"data_name": "([^"]*)"', json.dumps(data))


def kill_one(folder, journal, generator):
    """Fork, kill, recover; return what came of it."""
    count = generator.choice(COUNTS)
    rewrite = generator.choice((0, 0, 7, 50))
    task = generator.choice(("statistics", "tensor"))
    reading, told = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        with contextlib.suppress(BaseException):
            child(folder, journal, task, count, rewrite, told)
        os._exit(0)
    os.close(told)
    enough = 1 + int(generator.random() ** 2 * count)
    heard = os.read(reading, 1)
    while len(heard) < enough:
        heard += os.read(reading, 1 << 16)
    os.kill(pid, signal.SIGKILL)
    while more := os.read(reading, 1 << 16):
        heard += more
    os.close(reading)
    os.waitpid(pid, 0)
    returned = heard.count(b".")
    said = [outcome.text for outcome in recover(folder)]
    again = [outcome.text for outcome in recover(folder)]
    rank = os.path.join(folder, "step0", "rank")
    with open(os.path.join(rank, "dump.json")) as file:
        data = json.load(file)["data"]
    with open(os.path.join(rank, "stack.json")) as file:
        stacks = json.load(file)
    with_stack = {name for names, _ in stacks.values() for name in names}
    names = [f"Tensor.__add__.{i}.forward" for i in range(returned)]
    promised = names if journal == "each" else names[: max(returned - MOST_WAITING + 1, 0)]
    lost = [name for name in promised if name not in data or name not in with_stack]
    wrong = [
        name
        for i, name in enumerate(names)
        if name in data
        and (data[name]["output"][0]["Max"], data[name]["input_args"][1]["value"])
        != (i + 7.0, float(i))
    ]
    wrong += [
        file for file in files_of(data) if np.load(os.path.join(rank, ARRAYS, file)).shape != (8,)
    ]
    left = sorted(
        name
        for name in os.listdir(rank)
        if name != ARRAYS and not name.endswith((".json", ".jsonl"))
    )
    whole = heard.endswith(b"e")
    return {
        "count": count,
        "task": task,
        "arrays": len(files_of(data)),
        "returned": returned,
        "lost": lost,
        "wrong": wrong,
        "left": left,
        "whole": whole,
        "said": said,
        "again": again,
    }


def main():
    """Print the findings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--journal", choices=["batch", "each"], default="batch")
    parser.add_argument("--keep", help="a folder that keeps the largest dump")
    given = parser.parse_args()
    generator = random.Random(given.seed)
    found = []
    for _ in range(given.kills):
        folder = tempfile.mkdtemp()
        found.append(kill_one(folder, given.journal, generator))
        if given.keep and found[-1]["returned"] == max(one["returned"] for one in found) > 0:
            shutil.rmtree(given.keep, ignore_errors=True)
            shutil.copytree(folder, given.keep)
        shutil.rmtree(folder)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

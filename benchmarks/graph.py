# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Measures a step in GRAPH_MODE at L0: bare, with a tool that does nothing, with the window closed, with it open.

    python benchmarks/graph.py [--nets lenet,gpt] [--task statistics] [--rounds 20] [--repeat 3]

A compiled graph keeps its reports. So each kind of step has a process of its own, with a graph of its own; the four
processes run one step each in turn. A row counts where ``null`` is within 1 ± 0.05: elsewhere the machine was too busy.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

KINDS = ("bare", "null", "closed", "open")
#: a step that no training reaches
NEVER = 10**9


class Null:
    """A tool that does nothing."""

    def start(self, model):
        """Do nothing."""

    def stop(self):
        """Do nothing."""

    def step(self):
        """Do nothing."""


def make(kind, task, folder):
    """Return the tool of a kind of step, or None."""
    if kind == "bare":
        return None
    if kind == "null":
        return Null()
    from probe import PrecisionDebugger

    window = {"step": [NEVER]} if kind == "closed" else {}
    config = os.path.join(folder, "config.json")
    with open(config, "w") as file:
        json.dump(
            {
                "level": "L0",
                "task": task,
                "dump_path": os.path.join(folder, "dump"),
                "quiet": True,
                **window,
            },
            file,
        )
    return PrecisionDebugger(config_path=config)


def serve(kind, net_name, task):
    """Run a step for every line of stdin; print its milliseconds."""
    import mindspore as ms

    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_device("CPU")
    import trainings

    net, train = trainings.build(net_name)
    with tempfile.TemporaryDirectory() as folder:
        tool = make(kind, task, folder)
        for count, _ in enumerate(sys.stdin):
            begin = time.perf_counter()
            if tool is not None:
                tool.start(net)
            loss, gradients = train(count)
            for tensor in (loss, *gradients):
                tensor.asnumpy()
            if tool is not None:
                tool.stop()
                tool.step()
            print("ms", 1e3 * (time.perf_counter() - begin), flush=True)


def ask(server):
    """Have a server run one step; return its milliseconds."""
    server.stdin.write("\n")
    server.stdin.flush()
    for line in server.stdout:
        if line.startswith("ms "):
            return float(line.split()[1])
    raise SystemExit(f"a process has ended: {' '.join(server.args)}")


def measure(net, task, rounds):
    """Return the median milliseconds of each kind of step, run in turn."""
    servers = {}
    try:
        for kind in KINDS:
            command = [sys.executable, __file__, "--serve", kind, "--nets", net, "--task", task]
            servers[kind] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "GLOG_v": "3"},
            )
            for _ in range(3):  # compiles, and warms the caches
                ask(servers[kind])
        times = [{kind: ask(server) for kind, server in servers.items()} for _ in range(rounds)]
    finally:
        for server in servers.values():
            server.stdin.close()
            server.wait(60)
    return {kind: statistics.median(turn[kind] for turn in times) for kind in KINDS}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nets", default="lenet,gpt")
    parser.add_argument("--task", default="statistics")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--serve", choices=KINDS, help="be the process of one kind of step")
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.nets, given.task)
        return
    print("GRAPH_MODE L0; step over bare step, medians")
    print(f"{'row':20} {'bare ms':>8} {'null':>8} {'closed':>8} {'open':>8}")
    for net in given.nets.split(","):
        runs = [measure(net, given.task, given.rounds) for _ in range(given.repeat)]
        bare = statistics.median(run["bare"] for run in runs)
        ratios = [statistics.median(run[kind] / run["bare"] for run in runs) for kind in KINDS[1:]]
        print(
            f"{net + ':' + given.task:20} {bare:8.1f} "
            + " ".join(f"{ratio:8.2f}" for ratio in ratios),
            flush=True,
        )


if __name__ == "__main__":
    main()

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The cost of a recorded step of a program of torch on MindSpore, beside a bare one, in turn.

    .torch/bin/python benchmarks/torch_cost.py [--models llama,vit] [--pairs 8]
    .torch/bin/python benchmarks/torch_cost.py --models llama --budget 0.02 --pairs 300

A line of JSON for each model and level: the time of a bare step, and the median ratio of the pairs. With a budget each
step records a share of the calls, and the ratio is that of the sums.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def step(training, debugger=None):
    """Return the seconds of a step."""
    began = time.perf_counter()
    if debugger is not None:
        debugger.start(training.model)
    training.gradient().numpy()
    if debugger is not None:
        debugger.stop()
        debugger.step()
    spent = time.perf_counter() - began
    for parameter in training.trained.values():
        parameter.grad = None
    return spent


def of_budget(training, name, arguments):
    """Return the cost of rolling records within a budget, after as many steps without a clock."""
    from probe import PrecisionDebugger

    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config.json")
        settings = {"task": "statistics", "level": "mix", "dump_path": f"{folder}/dump"}
        config.write_text(json.dumps({**settings, "statistics": {"budget": arguments.budget}}))
        config.chmod(0o640)
        debugger = PrecisionDebugger(config_path=str(config))
        for _ in range(arguments.pairs):
            step(training)
            step(training, debugger)
        pairs = [(step(training), step(training, debugger)) for _ in range(arguments.pairs)]
        debugger.close()
    bare = sum(pair[0] for pair in pairs)
    own = sum(pair[1] for pair in pairs)
    row = {"model": name, "budget": arguments.budget, "bare_ms": round(1000 * bare / len(pairs))}
    return {**row, "ratio": round(own / bare, 4)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="llama,vit")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--budget", type=float)
    arguments = parser.parse_args()
    import mindnlp  # noqa: F401  # torch is mindtorch from here on

    from probe import PrecisionDebugger
    from tests.programs.torch_nets import Training

    for name in arguments.models.split(","):
        training = Training(name)
        if arguments.budget is not None:
            print(json.dumps(of_budget(training, name, arguments)), flush=True)
            continue
        for level in ("L0", "L1", "mix"):
            with tempfile.TemporaryDirectory() as folder:
                debugger = PrecisionDebugger(level=level, task="statistics", dump_path=folder)
                for _ in range(2):
                    step(training)
                    step(training, debugger)
                pairs = [(step(training), step(training, debugger)) for _ in range(arguments.pairs)]
                debugger.close()
            bare = statistics.median(pair[0] for pair in pairs)
            ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
            row = {"model": name, "level": level, "bare_ms": round(bare * 1000), "ratio": ratio}
            print(json.dumps({**row, "ratio": round(ratio, 2)}), flush=True)


if __name__ == "__main__":
    main()

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The cost of a recorded step of a program of torch on MindSpore, beside a bare one, in turn.

    .torch/bin/python benchmarks/torch_cost.py [--models llama,vit] [--pairs 8]

A line of JSON for each model and level: the time of a bare step, and the median ratio of the pairs.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="llama,vit")
    parser.add_argument("--pairs", type=int, default=8)
    arguments = parser.parse_args()
    import mindnlp  # noqa: F401  # torch is mindtorch from here on

    from probe import PrecisionDebugger
    from tests.programs.torch_nets import Training

    for name in arguments.models.split(","):
        training = Training(name)
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

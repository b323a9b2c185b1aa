# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Prints the largest error of Mean and Norm per dtype and processor, in Markdown.

    python benchmarks/accuracy.py [--quick]

Every processor is a process of its own, with OpenBLAS's kernels or numpy's variants for that processor.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from tests.support import arrays, processors

SIXTEEN_MILLION = 16_000_001


def measure(quick):
    """Return the largest errors of each dtype."""
    worst = {name: {"Mean": 0.0, "Norm": 0.0, "Max": 0.0, "Min": 0.0} for name in arrays.DTYPES}
    for name, dtype in arrays.DTYPES.items():
        for kind in arrays.KINDS:
            sizes = arrays.SIZES + arrays.LARGE_SIZES
            if not quick and (name == "float32" or kind in ("random", "constant")):
                sizes = [*sizes, SIXTEEN_MILLION]
            for size in sizes:
                seeds = range(1 if quick or size > 300_000 else 4)
                for array in (arrays.make(kind, dtype, size, seed) for seed in seeds):
                    for key, error in arrays.errors(array).items():
                        worst[name][key] = max(worst[name][key], float(error))
        if name == "float32":
            constants = (
                np.random.default_rng(0).uniform(0.5, 1, 100 if quick else 1500).astype(np.float32)
            )
            for constant in constants:
                for key, error in arrays.errors(np.full(65536, constant)).items():
                    worst[name][key] = max(worst[name][key], float(error))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="fewer arrays, none of 16 million elements"
    )
    parser.add_argument(
        "--here", action="store_true", help="only this process: print its numbers as JSON"
    )
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.quick)))
        return
    print(f"| processor | {' | '.join(f'{name} Mean, Norm' for name in arrays.DTYPES)} |")
    print(f"|---|{'---|' * len(arrays.DTYPES)}")
    for name, variables in processors.ALL.items():
        reason = processors.missing(name)
        if reason:
            print(f"| {name} | {reason} |")
            continue
        command = [sys.executable, __file__, "--here"] + (["--quick"] if options.quick else [])
        environment = {**os.environ, **variables}
        found = json.loads(
            subprocess.run(
                command, env=environment, capture_output=True, text=True, check=True
            ).stdout
        )
        cells = [f"{one['Mean']:.1e}, {one['Norm']:.1e}" for one in found.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

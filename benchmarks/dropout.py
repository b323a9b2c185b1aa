# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Shows, without probe, that MindSpore's Dropout on CPU differs between runs of one seed.

    python benchmarks/dropout.py [--processes 12] [--calls 12]

Each process seeds MindSpore and calls ``nn.Dropout`` on the same tensor. The table counts the different masks per call.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys


def masks(calls):
    """Return a digest of the mask of every call."""
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, nn

    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_seed(1)
    drop = nn.Dropout(p=0.5).set_train()
    ones = Tensor(np.ones((64, 4096), np.float32))
    return [hashlib.sha256(drop(ones).asnumpy().tobytes()).hexdigest() for _ in range(calls)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--calls", type=int, default=12)
    parser.add_argument(
        "--here", action="store_true", help="only this process: print its digests as JSON"
    )
    options = parser.parse_args()
    if options.here:
        print(json.dumps(masks(options.calls)))
        return
    found = []
    for _ in range(options.processes):
        command = [sys.executable, __file__, "--here", "--calls", str(options.calls)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    print("| call | different masks |\n|---|---|")
    for number, digests in enumerate(zip(*found), start=1):
        print(f"| {number} | {len(set(digests))} of {options.processes} |")


if __name__ == "__main__":
    main()

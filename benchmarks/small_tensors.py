# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Times how long measuring many small tensors on the device keeps the host, beside four reductions as in msprobe.

    python benchmarks/small_tensors.py [--count 1000] [--rounds 9]

Every round measures the same tensors both ways, in turn. Each time includes the fetch of the numbers. CPU has no kernel
for ``mint.norm``, so ``mint.sum`` stands in for it. Tensors of 16 elements are copied, those of 512 are reduced.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

_SIZES = 16, 512


def four_reductions(tensors):
    """Return four numbers of each tensor, fetched at the end."""
    from mindspore import mint

    scalars = [(mint.max(x), mint.min(x), mint.mean(x), mint.sum(x)) for x in tensors]
    return [[scalar.item() for scalar in four] for four in scalars]


def probe(tensors):
    """Return the four numbers of each tensor, by probe at ``"measure": "device"``."""
    from probe.measure.device import DeviceMeasurer
    from probe.measure.host import HostMeasurer
    from probe.measure.measurer import Role
    from probe.measure.reductions import Reductions

    measurer = DeviceMeasurer(
        HostMeasurer(md5=False), reduces=True, reductions=Reductions(True, False)
    )
    pending = [measurer.tensor(x, "", None, Role.OUTPUT) for x in tensors]
    measurer.complete(lambda operation: contextlib.nullcontext())
    return [item.record.text("") for item in pending]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()

    import mindspore as ms

    ms.set_context(mode=ms.PYNATIVE_MODE)
    random = np.random.RandomState(1)
    for size in _SIZES:
        tensors = [ms.Tensor(random.randn(size).astype(np.float32)) for _ in range(options.count)]
        times = {four_reductions: [], probe: []}
        for _ in range(options.rounds + 1):
            for way, taken in times.items():
                began = time.perf_counter()
                found = way(tensors)
                taken.append((time.perf_counter() - began) / options.count * 1e6)
                assert len(found) == options.count
        four, ours = (statistics.median(taken[1:]) for taken in times.values())
        print(
            f"{size} float32: four reductions {four:.1f} us a tensor, probe {ours:.1f} us: {ours / four:.2f} times"
        )


if __name__ == "__main__":
    main()

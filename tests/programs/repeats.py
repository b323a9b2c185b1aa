# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls each listed API 60 times with equal inputs, and names those whose bits depend on the number of the call.

    python -m tests.programs.repeats [--scale 1] [--name TEXT]

probe takes no part. A CPU kernel of MindSpore tries other divisions of its work in its calls 6 to 30, at most. It
measures their time, and keeps the fastest. All shapes of one operation share this count, so each API has a process of
its own. ``--scale`` makes the batch so many times longer: other divisions become possible. One JSON line for each API
that does not repeat, and a line with the count.
"""

from __future__ import annotations

import argparse
import json
import os
import signal

import mindspore as ms
import numpy as np
from mindspore import ops

from probe.capture import support_ops
from probe.capture.autograd.nodes import AutogradNodes
from tests.whitelist import running
from tests.whitelist.comparing import name_of, working_call
from tests.whitelist.generate import Values

CALLS = 60


def bits(run):
    """Return the bytes of all outputs and gradients of a run."""
    arrays = [*run.outputs, *run.gradients.values()]
    return [array.tobytes() for array in arrays if isinstance(array, np.ndarray)]


def scaled(values, scale):
    """Make the batch of a call longer, which is the first axis of its first input, and the floats other ones."""
    generator = np.random.RandomState(0)
    batch = values.arrays[0].shape[:1] if values.arrays else ()
    for place, array in enumerate(values.arrays):
        longer = (
            np.concatenate([array] * scale) if array.ndim and array.shape[:1] == batch else array
        )
        if array.ndim and array.dtype == np.float32:
            longer = (longer * generator.uniform(0.5, 1, longer.shape)).astype(np.float32)
        values.arrays[place] = longer
    return values


def unequal(call):
    """Return the numbers of the calls whose bits are other than those of the first."""
    first = bits(call())
    return [number for number in range(1, CALLS) if bits(call()) != first]


def look(api, scale, direction):
    """Print an API that does not repeat in this direction; return whether it was called."""
    _, values, run = working_call(api)
    if values is None or run is None or run.changed:
        return False
    values = scaled(Values(api.key, values.call), scale)
    if direction == "forward":
        found = unequal(lambda: running.forward(api, values))
    elif values.floats and running.differentiable(run.outputs):
        key = AutogradNodes().key
        found = unequal(lambda: running.gradient(api, values, running.Mode(), key))
    else:
        return False
    if found:
        print(json.dumps({"api": name_of(api), "direction": direction, "calls": found}), flush=True)
    return True


def in_a_process(*call):
    """Run ``look`` in a fork and return its result: False where it raised, crashed or took a minute."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        status = 0
        try:
            status = int(look(*call))
        finally:  # an error too ends the fork here
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--name", default="")
    arguments = parser.parse_args()
    listed = [
        api for api in support_ops.load_supported_apis(None) if api.owner is not ops.functional
    ]
    chosen = [api for api in listed if arguments.name in api.key]
    called = sum(
        in_a_process(api, arguments.scale, way) for api in chosen for way in ("forward", "backward")
    )
    print(json.dumps({"apis": len(chosen), "called": called, "scale": arguments.scale}))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    main()

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The first run on an Ascend device: does GRAPH_MODE record there? Each check prints one line of JSON.

    python examples/check_ascend.py [--device Ascend] > ascend.txt

Send ascend.txt back, whole. It holds versions, names of files and numbers of tiny random nets, nothing of yours.
docs/compiled.md describes the lines. A check that fails prints its error, and the next one goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

X = np.arange(8, dtype=np.float32).reshape(2, 4) / 8


class Writer(nn.Cell):
    """Writes its input, and the gradient that arrives there."""

    def __init__(self, folder, dtype=ms.float32, depth=2):
        super().__init__()
        self.folder, self.dtype, self.depth = f"{folder}/", dtype, depth
        self.dump, self.dump_gradient = ops.TensorDump(), ops.DumpGradient()
        self.dense = nn.Dense(4, 4, weight_init=0.5)

    def construct(self, x):
        x = ops.cast(x, self.dtype)
        self.dump(self.folder + "x", x)
        x = ops.cast(x, ms.float32)
        for i in range(self.depth):
            x = self.dump_gradient(self.folder + "gradient" + str(i), x, "in")
            x = self.dense(x)
            self.dump(self.folder + "y" + str(i), x)
        total = x.sum()
        self.dump(self.folder + "total", total)
        return total


class Branch(nn.Cell):
    """Writes in a branch that depends on a value."""

    def __init__(self, folder):
        super().__init__()
        self.folder, self.dump = f"{folder}/", ops.TensorDump()

    def construct(self, x):
        if x.sum() > 0:
            x = x * 2
            self.dump(self.folder + "positive", x)
        else:
            self.dump(self.folder + "other", x)
        return x


class Net(nn.Cell):
    """A small net for the tool: a Cell that is called twice, and one that is not."""

    def __init__(self):
        super().__init__()
        self.first, self.twice, self.act = nn.Dense(4, 4), nn.Dense(4, 4), nn.ReLU()

    def construct(self, x):
        return self.twice(self.act(self.twice(self.first(x)))).sum()


def files(folder, seconds=20):
    """Return the files in the order of their ids, after no new one has come for a second."""
    count, deadline = -1, time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = list(Path(folder).rglob("*.npy"))
        if len(found) == count and count:
            break
        count = len(found)
        time.sleep(1)
    rows = []
    for path in sorted(found, key=lambda path: int(path.stem.rsplit("_", 1)[-1])):
        array = np.load(path)
        mode = oct(path.stat().st_mode & 0o777)
        rows.append(
            [path.name, str(array.dtype), list(array.shape), round(float(array.sum()), 4), mode]
        )
    return rows


def forward_and_backward(folder):
    gradient = ms.grad(Writer(folder))(Tensor(X))
    return {"gradient": round(float(gradient.asnumpy().sum()), 4), "files": files(folder)}


def dtypes(folder):
    for dtype in (ms.bfloat16, ms.float16, ms.int32, ms.bool_):
        Writer(folder, dtype, depth=0)(Tensor(X)).asnumpy()
    return {"files": files(folder)}


def branch(folder):
    Branch(folder)(Tensor(X)).asnumpy()
    return {"files": files(folder, 5)}


def pause(folder):
    from mindspore._c_expression import _tensordump_set_step

    net = Writer(folder, depth=0)
    counts = []
    for steps in ([], [2**31], []):
        _tensordump_set_step(steps)
        net(Tensor(X)).asnumpy()
        counts.append(len(files(folder, 5)))
    return {"files after each run: 2, 2, 4 expected": counts}


def large(folder):
    class Large(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dump = ops.TensorDump()

        def construct(self, x):
            self.dump(folder + "/large", x)
            return x + 1

    began = time.monotonic()
    Large()(ops.ones((256, 1024, 1024), ms.float32)).asnumpy()
    return {"files": files(folder, 120), "seconds": round(time.monotonic() - began, 1)}


def train(debugger):
    """Return the losses and the parameters of three steps, as texts."""
    ms.set_seed(1)
    np.random.seed(1)
    net = Net()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    step = ms.value_and_grad(net, None, optimizer.parameters)
    losses = []
    for i in range(3):
        if debugger:
            debugger.start(net)
        loss, gradients = step(Tensor(X + i))
        optimizer(gradients)
        if debugger:
            debugger.stop()
            debugger.step()
        losses.append(float(loss.asnumpy()).hex())
    return losses, [parameter.asnumpy().tobytes().hex()[:64] for parameter in net.get_parameters()]


def tool(folder):
    from probe import PrecisionDebugger

    bare = train(None)
    began = time.monotonic()
    debugger = PrecisionDebugger(level="L0", step=[1], dump_path=folder)
    watched = train(debugger)
    seconds = time.monotonic() - began
    debugger.close()
    found = {
        "bitwise equal": bare == watched,
        "seconds": round(seconds, 2),
        "left": sorted(os.listdir(folder)),
    }
    for path in Path(folder).rglob("dump_error_info.log"):
        found["errors"] = path.read_text()[-2000:]
    for path in Path(folder).rglob("dump.json"):
        data = json.loads(path.read_text())["data"]
        found["entries"] = list(data)
        found["first"] = data.get("Cell.first.Dense.forward.0")
        found["backward"] = data.get("Cell.first.Dense.backward.0")
    return found


# the tool comes last: after it MindSpore writes no files of TensorDump in this process
CHECKS = (forward_and_backward, dtypes, branch, pause, large, tool)


def main():
    """Run every check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="Ascend")
    parser.add_argument("--only", nargs="*", help="names of checks")
    arguments = parser.parse_args()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_device(arguments.device)
    variables = {name: value for name, value in os.environ.items() if name.startswith("MS_DUMP")}
    say(
        "versions",
        {
            "mindspore": ms.__version__,
            "python": platform.python_version(),
            "environment": variables,
        },
    )
    for check in CHECKS:
        if arguments.only and check.__name__ not in arguments.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                say(check.__name__, check(folder))
            except Exception as error:
                say(
                    check.__name__, {"error": f"{type(error).__name__}: {str(error).strip()[:600]}"}
                )


def say(name, content):
    """Print one line."""
    print(json.dumps({"check": name, **content}), flush=True)


if __name__ == "__main__":
    main()

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Measures a step of gpt mix tensor with links and without, beside the raw write of the distinct bytes.

    python benchmarks/links.py [--folder /dev/shm] [--rounds 6]

Every round runs a bare step, a step of task statistics, and one of task tensor with and without links, in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

_TOOLS = {
    "statistics": {"task": "statistics"},
    "with links": {"task": "tensor", "link_equal": True},
    "without links": {"task": "tensor", "link_equal": False},
}


def step(net, train, folder, settings):
    """Return the seconds of one step; settings None is a bare step."""
    debugger = None
    if settings is not None:
        from probe import PrecisionDebugger

        config = folder / "config.json"
        config.write_text(
            json.dumps(
                {"level": "mix", "dump_path": str(folder / "dump"), "quiet": True, **settings}
            )
        )
        debugger = PrecisionDebugger(config_path=str(config))
    begin = time.perf_counter()
    if debugger is not None:
        debugger.start(net)
    loss, gradients = train(0)
    loss.asnumpy(), [gradient.asnumpy() for gradient in gradients]
    if debugger is not None:
        debugger.stop()
        debugger.step()
    used = time.perf_counter() - begin
    if debugger is not None:
        debugger.close()
    return used


def distinct(folder):
    """Return the bytes of the arrays of a dump, each file once."""
    files = {
        path.stat().st_ino: path for path in folder.glob("dump/step0/rank/dump_tensor_data/*.npy")
    }
    return [path.read_bytes() for path in files.values()]


def raw(folder, contents):
    """Return the seconds that writing these files takes."""
    target = folder / "raw"
    target.mkdir()
    begin = time.perf_counter()
    for number, content in enumerate(contents):
        file = os.open(target / str(number), os.O_WRONLY | os.O_CREAT, 0o640)
        os.write(file, content)
        os.close(file)
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()

    import mindspore as ms

    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    import trainings

    net, train = trainings.build("gpt")
    times = {name: [] for name in ("bare", *_TOOLS, "raw write")}
    sizes = {}
    for _ in range(options.rounds + 1):
        for name, settings in {"bare": None, **_TOOLS}.items():
            folder = Path(tempfile.mkdtemp(dir=options.folder))
            times[name].append(step(net, train, folder, settings))
            contents = distinct(folder)
            sizes[name] = len(contents), sum(map(len, contents))
            if name == "with links":
                times["raw write"].append(raw(folder, contents))
            shutil.rmtree(folder)
    middle = {name: statistics.median(found[1:]) * 1e3 for name, found in times.items()}
    for name in _TOOLS:
        files, size = sizes[name]
        print(
            f"{name}: {middle[name] - middle['bare']:.0f} ms added, {files} files, {size / 1e6:.0f} MB",
            flush=True,
        )
    limit = middle["statistics"] - middle["bare"] + middle["raw write"] + 250
    print(f"raw write of the distinct bytes: {middle['raw write']:.0f} ms")
    print(
        f"with links / limit (statistics + raw write + 250 ms): {(middle['with links'] - middle['bare']) / limit:.2f}"
    )
    print(f"bytes with links / without: {sizes['with links'][1] / sizes['without links'][1]:.2f}")


if __name__ == "__main__":
    main()

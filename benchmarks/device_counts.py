# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Launches, copies and waits of a recorded step on the simulated Ascend, as the simulator counts them.

    python benchmarks/device_counts.py [--peer PYTHON_WITH_MSPROBE] [--levels L0,L1,mix] [--ways statistics,rolling]

A count is that of the second recorded step of lenet minus that of a bare step, divided by the entries of the step. It
holds ``start``, ``stop`` and ``step``. Two columns divide all launches by tensors: by those in dump.json, and by the
larger ones of them, which are reduced where the others are copied. Of ``rolling`` it is the sum of a round of steps,
each minus a bare one, divided by the entries that were recorded. A count is no time: the simulator says nothing about
speed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

ROLLING = "rolling"
ROUND = 11  # steps of a round
WAYS = {
    "statistics": {"task": "statistics"},
    "md5": {"task": "statistics", "statistics": {"summary_mode": "md5"}},
    "tensor": {"task": "tensor"},
    ROLLING: {"task": "statistics", "statistics": {"rolling": ROUND}},
}
KINDS = ("launches", "copies", "waits")
#: names of dtypes -> bytes of an element; tensors of up to so many bytes are copied
ITEMS, SMALL = {"Float32": 4, "Int32": 4, "Int64": 8, "Bool": 1}, 1024


def make(tool, level, way, folder):
    """Return a debugger of a tool that writes below a folder."""
    settings = {"level": level, "dump_path": str(folder / "dump"), **WAYS[way]}
    settings.setdefault(settings["task"], {})
    if tool == "probe":
        settings["measure"] = "device"
    config = folder / "config.json"
    config.write_text(json.dumps(settings))
    config.chmod(0o640)
    module = importlib.import_module("probe" if tool == "probe" else "msprobe.mindspore")
    return module.PrecisionDebugger(config_path=str(config))


def records(value):
    """Yield the records of tensors in a part of dump.json."""
    if isinstance(value, dict) and value.get("type") == "mindspore.Tensor":
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from records(item)


def count(tool, level, way, folder):
    """Return what one recorded step asked of the device beyond a bare step, and its entries; runs on the simulator."""
    import mindspore as ms

    from tests.ascend.simulator import Device
    from tests.support import nets

    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("Ascend")
    device = Device()
    net, train = nets.build("lenet")

    def step(number, debugger=None):
        ms.runtime.synchronize()
        with device.record() as lines:
            if debugger is not None:
                debugger.start(net)
            train(number)
            if debugger is not None:
                debugger.stop()
                debugger.step()
            ms.runtime.synchronize()
        found = Counter(line.split()[0] for line in lines)
        return {"launches": found["launch"], "copies": found["copy"], "waits": found["wait"]}

    bare = [step(number) for number in range(3)][-1]
    debugger = make(tool, level, way, folder)
    if way == ROLLING:
        step(3, debugger)  # counts the calls
        steps = [step(4 + number, debugger) for number in range(ROUND)]
        debugger.close()
        return {
            **of_rows(folder),
            **{kind: sum(one[kind] - bare[kind] for one in steps) for kind in KINDS},
        }
    recorded = [step(number, debugger) for number in (3, 4)][-1]
    if tool == "probe":
        debugger.close()
    (document,) = folder.glob("dump/step1/*/dump.json")
    data = json.loads(document.read_text())["data"]
    sizes = [math.prod(one["shape"]) * ITEMS[one["dtype"]] for one in records(data)]
    tensors = {"recorded": len(sizes), "reduced": sum(size > SMALL for size in sizes)}
    return {
        "entries": len(data),
        **tensors,
        **{kind: recorded[kind] - bare[kind] for kind in KINDS},
    }


def of_rows(folder):
    """Return the entries of rolling records below a folder, and their tensors."""
    from probe.series.series import open_series

    content = open_series(str(folder / "dump"))[0].calls
    heads = [head for _, records_of_step in content.records() for head, _ in records_of_step]
    tensors = sum(column.endswith(".norm") for head in heads for column in head.columns)
    return {"entries": len(heads), "recorded": tensors, "reduced": tensors}


def start(python, tool, level, way):
    """Return what ``count`` returns in a process of its own, or the last line of its error."""
    with tempfile.TemporaryDirectory() as folder:
        one = [python, str(Path(__file__).resolve()), "--one", tool, level, way, folder]
        command = [python, "-m", "tests.ascend.simulator", "run", *one]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, env=dict(os.environ)
        )
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines:
        return json.loads(lines[-1])
    return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1]}


def ratio(found, kind, over="entries"):
    """Return a count over the entries, or over the tensors, as a text."""
    return f"{found[kind] / found[over]:.2f}" if kind in found else "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="a Python that has msprobe, for rows of its own")
    parser.add_argument("--levels", default="L0,L1,mix")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        tool, level, way, folder = given.one
        print(json.dumps(count(tool, level, way, Path(folder))))
        return
    sides = {"probe": sys.executable, **({"msprobe": given.peer} if given.peer else {})}
    heads = ["level, task", "entries", *KINDS, "launches a recorded tensor", "a reduced one"]
    print(f"each cell: {' / '.join(sides)}\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for way in given.ways.split(","):
        for level in given.levels.split(","):
            found = [
                start(os.path.abspath(python), tool, level, way)
                for tool, python in sides.items()
                if tool == "probe" or way != ROLLING
            ]
            entries = " / ".join(str(one.get("entries", one.get("error"))) for one in found)
            columns = [
                *((kind,) for kind in KINDS),
                ("launches", "recorded"),
                ("launches", "reduced"),
            ]
            cells = [" / ".join(ratio(one, *column) for one in found) for column in columns]
            print(f"| {level} {way} | {entries} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

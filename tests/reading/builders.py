# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Dumps that tests of the reading side make by hand, without MindSpore."""

from __future__ import annotations

import copy
import json
import math
import zlib

import numpy as np

from probe.reading.dumps.document import Document
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.folders import DumpFolder


def tensor(**numbers):
    """Return the record of a tensor, with other numbers than usual where they are given: norm=3.0, Max=9.0."""
    record = {
        "type": "mindspore.Tensor", "dtype": "Float32", "shape": [2, 3],
        "Max": 2.0, "Min": -1.0, "Mean": 0.5, "Norm": 2.0,
    }  # fmt: skip
    return {
        **record,
        **{{"norm": "Norm", "mean": "Mean"}.get(key, key): item for key, item in numbers.items()},
    }


def record(array, md5=False, **more):
    """Return the record of an array, with its checksum if it is wanted."""
    wide = array.astype(np.float64)
    found = {
        "type": "mindspore.Tensor",
        "dtype": "Float32",
        "shape": list(array.shape),
        "Max": float(wide.max()),
        "Min": float(wide.min()),
        "Mean": float(wide.mean()),
        "Norm": float(np.linalg.norm(wide)),
        **more,
    }
    return {**found, "md5": f"{zlib.crc32(array.tobytes()):08x}"} if md5 else found


def named(word, md5=False):
    """Return the record of a tensor that its name tells: "x", "x~" nearly the same, "x:2x6" of another shape."""
    name, _, shape = word.partition(":")
    lengths = [int(length) for length in shape.split("x")] if shape else [3, 4]
    array = np.random.RandomState(zlib.crc32(name.rstrip("~").encode())).randn(*lengths)
    return record((array * (1 + 2e-6 * name.count("~"))).astype(np.float32), md5)


def calls(*lines, md5=False):
    """Return the entries of calls, one a line: "relu x 2 -> y" is Functional.relu, given x and 2, and returns y.

    A word with dots is the key of a call of another kind: "Cell.fc.Dense x -> y". A key with "!" is the backward of the
    latest call of this key.
    """
    data, counts = {}, {}
    for line in lines:
        given, _, made = line.partition("->")
        word, *inputs = given.split()
        key = word.rstrip("!") if "." in word else f"Functional.{word.rstrip('!')}"
        is_backward = word.endswith("!")
        number = counts[key] = counts.get(key, -1) + (not is_backward)
        direction = "backward" if is_backward else "forward"
        name = (
            f"{key}.{direction}.{number}"
            if key.startswith("Cell.")
            else f"{key}.{number}.{direction}"
        )
        arguments = [value(int(item)) if item.isdigit() else named(item, md5) for item in inputs]
        outputs = [named(item, md5) for item in made.split()]
        data[name] = (
            {"input": arguments, "output": outputs} if is_backward else forward(arguments, outputs)
        )
    return data


class _InMemory:
    """A folder that lies in memory."""

    def __init__(self, document):
        self._document = document

    def read(self, folder):
        return self._document


def dump(data, construct=None, stacks=None, step=0, rank=0, **header):
    """Return a dump in memory; its entries are a copy."""
    head = {
        "task": "statistics",
        "level": "mix",
        "framework": "mindspore",
        "dump_data_dir": None,
        **header,
    }
    document = Document(
        head, copy.deepcopy(data), lambda: stacks or {}, lambda: construct or {}, []
    )
    return Dump(DumpFolder(f"step{step}/rank{rank}", step, rank, "", _InMemory(document)))


def value(item):
    """Return the record of a plain value."""
    return {"type": type(item).__name__, "value": item}


def forward(inputs, outputs, **kwargs):
    """Return the entry of a forward call."""
    return {"input_args": list(inputs), "input_kwargs": kwargs, "output": list(outputs)}


def write(folder, data, stack=None, construct=None, **header):
    """Write a rank folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    head = {
        "task": "statistics",
        "level": "mix",
        "framework": "mindspore",
        "dump_data_dir": None,
        **header,
    }
    (folder / "dump.json").write_text(json.dumps({**head, "data": data}, indent=1))
    (folder / "stack.json").write_text(json.dumps(stack or {}))
    (folder / "construct.json").write_text(json.dumps(construct or {}))
    return folder


def two_runs(folder, ranks=5):
    """Write runs; the second has a fault on rank 2 in step 1, and NaN on rank 3. Rank 4 has the data of rank 0."""
    for run in ("a", "b"):
        for step in (0, 1):
            for rank in range(ranks):
                off = 1.5 if (run, step, rank) == ("b", 1, 2) else 1.0
                last = math.nan if (run, rank) == ("b", 3) else 5.0
                x, y = tensor(norm=10.0 + rank % 4), tensor(norm=2.0 + rank * off)
                data = {
                    "Functional.f.0.forward": forward([x], [y]),
                    "Functional.g.0.forward": forward([y], [tensor(norm=last, Max=last)]),
                    "Cell.fc.Dense.parameters_grad.0": {"output": [tensor(norm=3.0 + step)]},
                }
                write(folder / run / f"step{step}" / f"rank{rank}", data)
    return str(folder / "a"), str(folder / "b")

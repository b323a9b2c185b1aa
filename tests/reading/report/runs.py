# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Runs made by hand for the report, and the content of a page as its script reads it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from array import array

from tests.reading import builders

FRAME = "File /home/ann/secret/net/{}, line {}, in construct, \n {}"
PACKAGES = "/home/ann/env/lib/python3.11/site-packages"
LIBRARY = f"File {PACKAGES}/mindspore/nn/cell.py, line 7, in __call__, \n out = self.construct()"
CELLS = "Cell.blocks.1.attention.Attention.forward.0"
FAULT = "Tensor.__mul__.0.forward"


def one_dump(folder, scale, factor, step=0, rank=0, names=()):
    """Write a step of one rank: an embedding, a multiplication by a scale, a softmax, a loss, and their backwards."""
    base = 1.0 + step / 10 + rank / 100
    x, y, z, loss = (
        builders.tensor(norm=base * n, Max=base * n, mean=base / n) for n in (3.0, 5.0, 7.0, 11.0)
    )
    x = {**x, "Mean": base / 3}
    y, z = ({**item, "Norm": item["Norm"] * factor, "Max": item["Max"] * factor} for item in (y, z))
    loss = {
        **loss,
        "shape": [],
        "Mean": 2.0 / (step + 1) * factor,
        "Max": 1.0,
        "Min": 1.0,
        "Norm": 1.0 * factor,
    }
    grad = builders.tensor(norm=0.5 * factor * base)
    data = {
        "Primitive.gather.Gather.0.forward": builders.forward(
            [builders.tensor(norm=1.0, Max=base)], [x]
        ),
        FAULT: builders.forward([x, builders.value(scale)], [y]),
        "Functional.my_softmax.0.forward": builders.forward([y], [z]),
        CELLS: builders.forward([x], [z]),
        "Functional.cross_entropy.0.forward": builders.forward([z], [loss]),
        "Functional.cross_entropy.0.backward": {
            "input": [builders.tensor(norm=1.0)],
            "output": [grad],
        },
        "Functional.my_softmax.0.backward": {
            "input": [grad],
            "output": [builders.tensor(norm=0.25 * factor * base)],
        },
        "Cell.blocks.1.attention.Attention.parameters_grad.0": {
            "weight": [builders.tensor(norm=0.125 * factor * base)]
        },
    }
    for number, name in enumerate(names):
        data[name] = builders.forward(
            [builders.tensor(norm=50.0 + number)], [builders.tensor(norm=60.0 + number)]
        )
    stack = {
        "0": [
            [FAULT],
            [LIBRARY, FRAME.format("model/attention.py", 48, "scores = q @ k * the_secret_scale")],
        ],
        "1": [
            ["Functional.my_softmax.0.forward"],
            [FRAME.format("train.py", 9, "weights = softmax(scores)")],
        ],
    }
    construct = {
        FAULT: CELLS,
        "Functional.my_softmax.0.forward": CELLS,
        CELLS: "Cell.blocks.1.Block.forward.0",
    }
    return builders.write(folder / f"step{step}" / f"rank{rank}", data, stack, construct)


def faulty(folder, steps=3, ranks=4, **options):
    """Write a golden run and one with another scale; return their folders."""
    for step in range(steps):
        for rank in range(ranks):
            one_dump(folder / "golden", 0.25, 1.0, step, rank, **options)
            one_dump(folder / "mine", 0.0625, 1.5, step, rank, **options)
    return folder / "golden", folder / "mine"


def columns(page):
    """Return the columns of a page: name -> numbers, or the description."""
    text = page.read_text("utf-8")
    found = {}
    for name, kind, letters in re.findall(r'id="data-([\w-]+)" data-kind="([^"]+)">([^<]*)<', text):
        content = gzip.decompress(base64.b64decode(letters))
        if kind == "json":
            found[name] = json.loads(content)
            continue
        size = array(kind[0]).itemsize
        count = len(content) // size
        planes = [content[plane * count : (plane + 1) * count] for plane in range(size)]
        found[name] = array(kind[0], bytes(byte for number in zip(*planes) for byte in number))
        if kind.endswith("^"):
            base = found[name[:-1] + "a"].tobytes()
            found[name] = array(kind[0], bytes(x ^ y for x, y in zip(found[name].tobytes(), base)))
    return found

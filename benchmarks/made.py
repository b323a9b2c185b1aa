# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes dumps of any size, with the calls of a deep stack of blocks and numbers that link them."""

from __future__ import annotations

import json
import random
from pathlib import Path

_SHAPE = [8, 512, 1024]
_COUNT = 8 * 512 * 1024
#: the calls of a block: (API, name of the Cell in the block or "", whether it has a parameter)
_CALLS = [
    ("Primitive.layer_norm.LayerNorm", "norm1.LayerNorm", True),
    ("Primitive.matmul.MatMul", "attention.q.Dense", True),
    ("Tensor.reshape", "attention.Attention", False),
    ("Functional.softmax", "attention.Attention", False),
    ("Primitive.matmul.MatMul", "attention.o.Dense", True),
    ("Tensor.__add__", "", False),
    ("Primitive.matmul.MatMul", "up.Dense", True),
    ("Functional.sigmoid", "", False),
    ("Tensor.__mul__", "", False),
    ("Primitive.matmul.MatMul", "down.Dense", True),
    ("Tensor.__add__", "", False),
]


class Maker:
    """Makes one dump.

    Args:
        seed: of the numbers.
        noise: how far each number of this dump is from that of a dump without noise, relatively.
    """

    def __init__(self, seed: int, noise: float) -> None:
        self._numbers, self._shake, self._noise = (
            random.Random(seed),
            random.Random(seed + 1),
            noise,
        )
        self.data, self.construct, self.names = {}, {}, []
        self._counts, self._number = {}, 0

    def tensor(self, shape=None):
        """Return a new record."""
        rng, factor = self._numbers, 1.0 + self._noise * self._shake.uniform(-1, 1)
        norm = rng.uniform(500, 4000) * factor
        return {
            "type": "mindspore.Tensor",
            "dtype": "Float32",
            "shape": shape or _SHAPE,
            "Max": rng.uniform(1, 9) * factor,
            "Min": -rng.uniform(1, 9) * factor,
            "Mean": rng.uniform(-0.1, 0.1) * factor,
            "Norm": norm,
        }

    def block(self, number, x):
        """Add the calls of a block; return its output."""
        block = f"Cell.blocks.{number}.Block"
        first, gradients, places, residual = x, [], [], x
        for api, cell, has_weight in _CALLS:
            count = self._counts[api] = self._counts.get(api, -1) + 1
            around = f"Cell.blocks.{number}.{cell}.forward.0" if cell else f"{block}.forward.0"
            weight = self.tensor([1024, 1024]) if has_weight else None
            inputs = (
                [x, weight]
                if has_weight
                else [x, residual]
                if api in ("Tensor.__add__", "Tensor.__mul__")
                else [x]
            )
            output = self.tensor()
            name = f"{api}.{count}.forward"
            self.data[name] = {"input_args": inputs, "input_kwargs": {}, "output": [output]}
            self.construct[name] = around
            self.names.append(name)
            if has_weight:
                self.data[around] = {
                    "input_args": [x],
                    "input_kwargs": {},
                    "output": [output],
                    "parameters": {"weight": weight},
                }
                gradients.append(around.replace(".forward.", ".parameters_grad."))
            if cell:
                self.construct[around] = f"{block}.forward.0"
            places.append((f"{api}.{count}.backward", len(inputs)))
            residual = residual if api != "Tensor.__add__" else output
            x = output
        self.data[f"{block}.forward.0"] = {
            "input_args": [first],
            "input_kwargs": {},
            "output": [x],
            "parameters": {},
        }
        self.construct[f"{block}.forward.0"] = None
        return x, places, gradients

    def backward(self, blocks):
        """Add the backwards of the blocks, the last one first."""
        gradient = self.tensor()
        for number, (places, gradients) in reversed(list(enumerate(blocks))):
            for name, count in reversed(places):
                outputs = [self.tensor() for _ in range(count)]
                self.data[name] = {"input": [gradient], "output": outputs}
                gradient = outputs[0]
            for name in gradients:
                self.data[name] = {"weight": [self.tensor([1024, 1024])]}
            self.data[f"Cell.blocks.{number}.Block.backward.0"] = {
                "input": [self.tensor()],
                "output": [gradient],
            }


def make(folder, entries=20_000, seed=1, noise=0.0):
    """Write a rank folder of at least so many entries; return it."""
    maker, blocks = Maker(seed, noise), []
    x = maker.tensor()
    per_block = 2 * len(_CALLS) + 5 + 5 + 2
    for number in range(entries // per_block + 1):
        x, places, gradients = maker.block(number, x)
        blocks.append((places, gradients))
    maker.backward(blocks)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    header = {"task": "statistics", "level": "mix", "framework": "mindspore", "dump_data_dir": None}
    (folder / "dump.json").write_text(json.dumps({**header, "data": maker.data}, indent=1))
    frames = [
        [f"File /home/me/model.py, line {line}, in construct, \n x = self.call{line}(x)"]
        for line in range(99)
    ]
    stacks = {str(i): [maker.names[i::99], frames[i]] for i in range(99)}
    (folder / "stack.json").write_text(json.dumps(stacks))
    (folder / "construct.json").write_text(json.dumps(maker.construct))
    return folder

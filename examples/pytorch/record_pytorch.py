# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One training step of a small transformer in PyTorch, recorded by msprobe (mindstudio-probe 26.2.0) on CPU.

    pip install torch mindstudio-probe
    python examples/pytorch/record_pytorch.py --keep examples/pytorch

It has made the folders L0, L1 and arrays beside it. They are in the repository, so that nobody needs PyTorch
to run the comparison. Absolute paths are made relative, and the number of the process is left out of a folder's name;
the rest is as msprobe wrote it.
"""

import argparse
import json
import os
import re
import shutil
import site
import sys
import tempfile

import torch
from msprobe.pytorch import PrecisionDebugger
from torch import nn
from torch.nn import functional as F
from weights import HIDDEN, LAYERS, LENGTH, VOCABULARY, WIDTH, batch, weights

HERE = os.path.dirname(os.path.abspath(__file__))

#: folder -> level, task, and the modules whose arrays are kept
RUNS = {
    "L0": ("L0", "statistics", []),
    "L1": ("L1", "statistics", []),
    "arrays": ("L0", "tensor", ["blocks.1.norm2", "blocks.1.act", "head.Head"]),
}


class Attention(nn.Module):
    """Self-attention with one head."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        scores = torch.matmul(self.q(x), self.k(x).transpose(1, 2)) * WIDTH**-0.5
        return self.o(torch.matmul(F.softmax(scores, dim=-1), self.v(x)))


class Block(nn.Module):
    """A transformer block."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.up, self.act, self.down = nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Head(nn.Module):
    """Logits; the weight has (outputs, inputs)."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(VOCABULARY, WIDTH))

    def forward(self, x):
        return F.linear(x, self.weight)


class Net(nn.Module):
    """A small transformer."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), Head()

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def record(folder, level, task, kept):
    """Record one step."""
    net = Net()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights().items()})
    tokens, labels = map(torch.from_numpy, batch())
    path = os.path.join(folder, "config.json")
    with open(path, "w") as file:
        settings = {
            "task": task,
            "level": level,
            "dump_path": os.path.join(folder, "dump"),
            "rank": [],
            "step": [],
        }
        settings[task] = {
            "scope": [],
            "list": kept,
            "data_mode": ["all"],
            "summary_mode": "statistics",
        }
        json.dump(settings, file)
    os.chmod(path, 0o640)
    debugger = PrecisionDebugger(config_path=path)
    debugger.start(model=net)
    loss = F.cross_entropy(net(tokens).reshape(-1, VOCABULARY), labels)
    loss.backward()
    debugger.stop()
    debugger.step()
    print(level, task, loss.item())


def keep(folder, target):
    """Copy the documents and arrays of the one step, with relative paths."""
    places = {
        os.path.dirname(os.path.dirname(HERE)) + os.sep: "",
        folder + os.sep: "",
        sys.prefix + os.sep: "",
    }
    places.update({path + os.sep: "site-packages/" for path in site.getsitepackages()})
    shutil.rmtree(target, ignore_errors=True)
    for place, _, files in os.walk(os.path.join(folder, "dump")):
        for name in files:
            inner = re.sub(r"proc\d+", "proc", os.path.relpath(place, os.path.join(folder, "dump")))
            goal = os.path.join(target, inner, name)
            os.makedirs(os.path.dirname(goal), exist_ok=True)
            shutil.copyfile(os.path.join(place, name), goal)
            if name.endswith(".json"):
                with open(goal) as file:
                    text = file.read()
                for path in sorted(places, key=len, reverse=True):
                    text = text.replace(path, places[path])
                with open(goal, "w") as file:
                    file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", required=True, help="the folder that gets L0, L1 and arrays")
    parser.add_argument(
        "--only", choices=RUNS, help="one of them: msprobe has one debugger for each process"
    )
    given = parser.parse_args()
    if not given.only:
        for name in RUNS:
            if os.spawnv(
                os.P_WAIT,
                sys.executable,
                [sys.executable, __file__, "--keep", given.keep, "--only", name],
            ):
                raise SystemExit(f"{name} was not recorded")
        return
    with tempfile.TemporaryDirectory() as scratch:
        record(scratch, *RUNS[given.only])
        keep(scratch, os.path.join(os.path.abspath(given.keep), given.only))


if __name__ == "__main__":
    main()

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Snapshots that tests make by hand, without MindSpore."""

from __future__ import annotations

import copy
import json
import zlib

import numpy as np

LAYERS = 4


def described(array, dtype="Float32"):
    """Return the description of a tensor, as the recorder writes it."""
    words = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    total = int(words.astype(np.uint64).sum() % 2**32)
    crc = f"{zlib.crc32(np.ascontiguousarray(array).tobytes()):08x}"
    return {"dtype": dtype, "shape": list(array.shape), "crc": crc, "sum": total}


def arrays(seed=0):
    """Return the parameters of a model of blocks and a head."""
    rng = np.random.RandomState(seed)
    found = {}
    for block in range(LAYERS):
        found[f"blocks.{block}.norm.gamma"] = np.ones(8, np.float32)
        found[f"blocks.{block}.fc.weight"] = rng.randn(8, 8).astype(np.float32)
        found[f"blocks.{block}.fc.bias"] = np.zeros(8, np.float32)
    found["head.weight"] = rng.randn(4, 8).astype(np.float32)
    return found


def batches(count=6, seed=5):
    """Return the batches of some steps."""
    rng = np.random.RandomState(seed)
    return [rng.randint(0, 99, (4, 8)).astype(np.int32) for _ in range(count)]


class Experiment:
    """All that the snapshot of one run has; a test changes it before it is written.

    Attributes:
        run: the content of run.json, without its parameters.
        parameters: name -> (array, its dtype in words, whether it is trainable).
        steps: the batches.
        numbers: those of the optimizer.
        optimizer: the name of its entry.
        notes: the user's own values.
    """

    def __init__(self, folder):
        self.run = {
            "tool": "probe",
            "format": 1,
            "world_size": 1,
            "rank": None,
            "device": "CPU",
            "versions": {"probe": "0.1.0", "mindspore": "2.10.0", "numpy": "1.26.4"},
            "seed": 1,
            "deterministic": False,
            "command": ["/home/me/train.py", "--out", "golden", "--lr", "0.01"],
            "folder": "/home/me",
            "host": "one",
            "process": 7,
            "python": "3.11.7",
            "code": {"commit": "a" * 40, "files": {"train.py": "01", "model.py": "12"}},
            "packages": {"numpy": "1.26.4", "mindspore": "2.10.0", "pillow": "13.0.0"},
            "context": {
                "mode": 1,
                "device_target": "CPU",
                "jit_level": "",
                "deterministic": "OFF",
                "pynative_synchronize": False,
            },
            "environment": {"OMP_NUM_THREADS": "2", "PYTHONHASHSEED": "0", "MS_SCHED_PORT": "8118"},
            "first_step": 0,
            "dump_path": "/home/me/golden",
            "cell_values": {f"blocks.{n}.norm": {"epsilon": 1e-5} for n in range(LAYERS)},
            "cells": [
                ["", "Net"],
                *(
                    [f"blocks.{n}{path}", kind]
                    for n in range(LAYERS)
                    for path, kind in (("", "Block"), (".norm", "LayerNorm"), (".fc", "Dense"))
                ),
                ["head", "Dense"],
            ],
        }
        self.parameters = {name: [array, "Float32", True] for name, array in arrays().items()}
        self.steps = batches()
        self.optimizer = "Cell.optimizer.Adam"
        self.numbers = {
            "learning_rate": 0.01,
            "beta1": 0.9,
            "eps": 1e-8,
            "parameters": list(self.parameters),
        }
        self.notes = {
            "config": {"epochs": 3, "out": "golden", "layers": [2, 4]},
            "data": "/data/train",
        }
        self.folder = folder

    def write(self):
        """Write the snapshot, and return the folder of the run."""
        rank = (
            self.folder
            / "step0"
            / ("rank" if self.run["rank"] is None else f"rank{self.run['rank']}")
        )
        rank.mkdir(parents=True, exist_ok=True)
        parameters = {
            name: {
                "cell": name.rpartition(".")[0],
                "trainable": trainable,
                "values": described(array, dtype),
            }
            for name, (array, dtype, trainable) in self.parameters.items()
        }
        (rank / "run.json").write_text(json.dumps({**self.run, "parameters": parameters}))
        lines = [{"note": {name: value}} for name, value in self.notes.items()]
        lines += [
            {"step": n, "inputs": {"0": described(batch, "Int32")}}
            for n, batch in enumerate(self.steps)
        ]
        lines += [{"step": 0, "optimizer": self.optimizer, "numbers": self.numbers}]
        (rank / "run.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return self.folder


def pair(folder, change=lambda it: None):
    """Write two equal runs, of which the second was changed; return their folders."""
    golden, mine = Experiment(folder / "golden"), Experiment(folder / "mine")
    mine.parameters, mine.run = copy.deepcopy(mine.parameters), copy.deepcopy(mine.run)
    change(mine)
    return golden.write(), mine.write()

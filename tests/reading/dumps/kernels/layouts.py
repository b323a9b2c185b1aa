# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""File sets of kernel dumps, made after MindSpore's documentation "Using Dump in the Graph Mode" (2.7 and 2.10).

    python -m tests.reading.dumps.kernels.layouts FOLDER

writes one folder for each layout: cpu, ascend_o1, ascend_statistics, ascend_o2 (as msprobe arranges it), ascend_o2_path
(as MindSpore does without msprobe), ranks and cpu_ranks.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np

#: of the documentation: AlexNet in a WithLossCell
SCOPE = "Default/network-WithLossCell/_backbone-AlexNet"
CONV = f"{SCOPE}/conv3-Conv2d/Conv2D-op12"
RELU = f"{SCOPE}/features-SequentialCell/1-ReLU/ReLU-op13"
GRADIENT = f"Gradients/{SCOPE}/conv3-Conv2d/gradConv2D/Conv2DBackpropInput-op99"
UPDATE = "Default/optimizer-Momentum/ApplyMomentum-op5"
KERNELS = {CONV: "Conv2D", RELU: "ReLU", GRADIENT: "Conv2DBackpropInput", UPDATE: "ApplyMomentum"}
CELLS = {"conv3": "Conv2d", "features": "SequentialCell", "features.1": "ReLU"}
TIME = 1623124369613540


def values(kernel, side, slot, step=0, rank=0):
    """Return the array of one place: its numbers tell the place."""
    first = 100 * list(KERNELS).index(kernel) + 10 * slot + (5 if side == "output" else 0)
    return np.arange(6, dtype=np.float32).reshape(2, 3) + first + 1000 * step + 10000 * rank


def save(folder, name, array):
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / name, array)


def order(rank_folder, graph="0"):
    """Write the order of execution."""
    folder = rank_folder / "execution_order"
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["NodeExecutionOrder-FullNameWithScope", *KERNELS]
    (folder / f"ms_execution_order_graph_{graph}.csv").write_text("\n".join(lines) + "\n")
    (folder / f"ms_global_execution_order_graph_{graph}.csv").write_text("0\n1\n")


def run_file(rank_folder, **content):
    """Write probe's own file beside the dump."""
    (rank_folder / "kernel_run.json").write_text(
        json.dumps({"task": "tensor", "cells": CELLS, **content})
    )


def arrays(folder, op_name, form, step=0, rank=0):
    """Write the arrays of all kernels: two inputs and an output each.

    Args:
        folder: the folder of the step.
        op_name: full name -> the name in files.
        form: what stands behind the slot: "DefaultFormat.Float32".
        step, rank: change the values.
    """
    time = TIME
    for kernel, kind in KERNELS.items():
        for side, slot in (("input", 0), ("input", 1), ("output", 0)):
            time += 7
            name = f"{kind}.{op_name(kernel)}.0.7.{time}.{side}.{slot}.{form}.npy"
            save(folder, name, values(kernel, side, slot, step, rank))


def cpu(root):
    """CPU, O0 and O1: names with the scope, parameters and constants, two steps, two graphs."""
    rank_folder = root / "rank_0"
    for step in (0, 1):
        folder = rank_folder / "Net" / "0" / str(step)
        arrays(folder, lambda kernel: kernel.replace("/", "_"), "DefaultFormat.Float32", step)
        save(
            folder,
            f"Parameter.conv3_weight.0.0.{TIME + 900}.output.0.DefaultFormat.Float32.npy",
            np.ones(3, np.float32),
        )
        other = rank_folder / "Net" / "1" / str(step)
        save(
            other,
            f"Mul.Default_Mul-op0.0.0.{TIME + 500}.output.0.DefaultFormat.Int64.npy",
            np.arange(4),
        )
    save(
        rank_folder / "Net" / "0" / "constants",
        f"Parameter.data-3.0.0.{TIME}.output.0.DefaultFormat.Bool.npy",
        np.array([True]),
    )
    order(rank_folder)
    run_file(rank_folder)


def ascend_o1(root):
    """Ascend, O0 and O1: names without the scope, bfloat16 saved as float32, a name that was too long."""
    rank_folder = root / "rank_0"
    folder = rank_folder / "Net" / "0" / "5"
    arrays(folder, lambda kernel: kernel.rpartition("/")[2], "NCHW.bfloat16", 5)
    long_name = f"Add.{'A' * 260}-op7.0.7.{TIME + 800}.output.0.ND.float16.npy"
    save(folder, "8412367.npy", np.full(2, 0.5, np.float16))
    (folder / "mapping.csv").write_text(f"8412367.npy,{long_name}\n")
    (folder / "Conv2D.Conv2D-op12.json").write_text('{"transpose_a": "False"}')
    order(rank_folder)
    run_file(rank_folder)


def ascend_statistics(root):
    """Ascend with saved_data "statistic": a table and no arrays, one line cut by a kill."""
    rank_folder = root / "rank_0"
    folder = rank_folder / "Net" / "0" / "2"
    folder.mkdir(parents=True)
    columns = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,"
    columns += "Avg Value,NaN Count,L2Norm Value"
    with open(folder / "statistic.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns.split(","))
        for place, (kernel, kind) in enumerate(KERNELS.items()):
            for side, slot in (("input", 0), ("input", 1), ("output", 0)):
                array = values(kernel, side, slot, 2)
                bad = kernel == RELU and side == "output"
                numbers = [
                    "inf" if bad else array.max(),
                    array.min(),
                    "nan" if bad else array.mean(),
                    int(bad),
                ]
                norm = "inf" if bad else np.linalg.norm(array)
                name = kernel.replace("/", "_")
                writer.writerow(
                    [
                        kind,
                        name,
                        0,
                        7,
                        TIME + 10 * place,
                        side,
                        slot,
                        24,
                        "float32",
                        "(2,3)",
                        *numbers,
                        norm,
                    ]
                )
        file.write("Add,Default_Add-op1,0,7,16231")
    order(rank_folder)
    run_file(rank_folder, task="statistics")


def ascend_o2(root):
    """Whole graphs on Ascend: rank_{rank}/{time}/step_{step}, joined names, no execution order."""
    for step in (3, 4):
        folder = root / "rank_1" / "20241224103808" / f"step_{step}"
        arrays(folder, lambda kernel: kernel.replace("/", "_"), "ND.FLOAT", step, 1)
        save(folder, "12345.npy", np.zeros(2, np.int32))
        long_name = f"Cast.{'B' * 270}.0.7.{TIME + 800}.output.0.ND.INT32.npy"
        (folder / "mapping.csv").write_text(f"12345.npy,{long_name}\n")
    (root / "acl_dump_0.json").write_text("{}")
    run_file(root / "rank_1")


def ascend_o2_path(root):
    """Whole graphs without msprobe: {step}/{time}/{device}/{model}/{model id}/{iteration}."""
    folder = root / "6" / "20241224103808" / "2" / "ge_default_20241224103808_1" / "1" / "0"
    arrays(folder, lambda kernel: kernel.replace("/", "_"), "ND.float16", 6, 2)


def ranks(root):
    """Three ranks on devices, three steps."""
    for rank in (0, 1, 10):
        for step in (0, 2, 11):
            folder = root / f"rank_{rank}" / "Net" / "0" / str(step)
            arrays(
                folder, lambda kernel: kernel.replace("/", "_"), "DefaultFormat.Float32", step, rank
            )


def cpu_ranks(root):
    """Three ranks on CPU, which MindSpore numbers 0: probe gives each a folder."""
    for rank in (0, 1, 10):
        folder = root / f"rank{rank}" / "rank_0" / "Net" / "0" / "3"
        arrays(folder, lambda kernel: kernel.replace("/", "_"), "DefaultFormat.Float32", 3, rank)
        run_file(root / f"rank{rank}" / "rank_0")


LAYOUTS = {
    layout.__name__: layout
    for layout in (cpu, ascend_o1, ascend_statistics, ascend_o2, ascend_o2_path, ranks, cpu_ranks)
}

if __name__ == "__main__":
    for layout_name, layout in LAYOUTS.items():
        layout(Path(sys.argv[1]) / layout_name)

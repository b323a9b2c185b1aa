# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Plants faults in dumps of a precise device, and counts those that `probe replay` and `msprobe acc_check` name.

python -m tests.programs.beside_acc_check PYTHON [FOLDER]
PYTHON is an interpreter that has msprobe and torch; FOLDER keeps the dumps.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import probe
from tests.replaying.device import ROUNDING, Device, normed, number, rounded, softmax

ACC_CHECK = (
    "import sys; from msprobe.msprobe import main; sys.argv = ['msprobe', *sys.argv[1:]]; main()"
)


def calls(dtype):
    """Return key -> (inputs, outputs, gradients of the outputs, gradients of the inputs) of right calls."""
    rng = np.random.RandomState(3)

    def draw(*shape):
        return rounded(rng.randn(*shape), dtype)

    x, y, w, sens, one, zero = (
        draw(16, 64),
        draw(16, 64),
        draw(64, 16),
        draw(16, 16),
        draw(64),
        draw(64),
    )
    large, small, counts = (
        rounded(100 * x, dtype),
        rounded(sens / 2**14, dtype),
        rng.randint(0, 1000, (8, 8)).astype(np.int32),
    )
    shape = [number(64)]
    return {
        "Mint.exp": ([x], [np.exp(x)], None, None),
        "Mint.tanh": ([x], [np.tanh(x)], None, None),
        "Mint.square": ([x], [x * x], None, None),
        "MintFunctional.relu": ([x], [np.maximum(x, 0)], None, None),
        "Mint.add": ([x, y], [x + y], None, None),
        "Mint.matmul": ([x, w], [x @ w], [sens], [sens @ w.T, x.T @ sens]),
        "Mint.mm": ([large, w], [large @ w], [small], [small @ w.T, large.T @ small]),
        "MintFunctional.softmax": ([x, number(-1)], [softmax(x)], None, None),
        "Mint.cumsum": ([w, number(0)], [np.cumsum(w, 0)], None, None),
        "MintFunctional.layer_norm": (
            [x, shape, one, zero, number(1e-5)],
            [normed(x, one, zero, 1e-5)],
            None,
            None,
        ),
        "Tensor.transpose": ([x, number(0), number(1)], [x.T], None, None),
        "Tensor.add": ([counts, counts], [counts + counts], None, None),
    }


def one_element(values):
    """Return values of which one is wrong by the largest."""
    changed = np.array(values)
    changed.flat[1] += np.abs(changed).max()
    return changed


def faults(dtype):
    """Return (kind, key, whether a gradient is changed, its number, change)."""
    step = 1 + 20 * ROUNDING[dtype]
    rounding = [
        "Mint.exp", "Mint.tanh", "Mint.square", "MintFunctional.relu", "Mint.add", "Mint.matmul", "Mint.mm",
        "MintFunctional.softmax", "Mint.cumsum", "MintFunctional.layer_norm",
    ]  # fmt: skip
    found = [("20 roundings", key, False, 0, lambda v: v * step) for key in rounding]
    found += [
        ("20 roundings of a gradient", "Mint.matmul", True, place, lambda v: v * step)
        for place in (0, 1)
    ]
    found += [
        ("a halved gradient", "Mint.matmul", True, place, lambda v: v / 2) for place in (0, 1)
    ]
    found += [("a halved gradient, smaller than 0.001", "Mint.mm", True, 0, lambda v: v / 2)]
    found += [
        ("one element", key, False, 0, one_element)
        for key in ("Mint.exp", "Mint.matmul", "Tensor.add")
    ]
    eps = 1e-4 if dtype == "Float32" else 1e-1
    x, _, one, zero, _ = calls(dtype)["MintFunctional.layer_norm"][0]
    return [
        *found,
        ("an axis", "MintFunctional.softmax", False, 0, lambda v: softmax(np.log(v), 0)),
        ("an axis", "Mint.cumsum", False, 0, lambda v: v.T.copy().reshape(v.shape)),
        ("an axis", "Tensor.transpose", False, 0, lambda v: v[::-1]),
        ("NaN", "Mint.square", False, 0, lambda v: np.where(v == v.max(), np.nan, v)),
        ("zeros", "MintFunctional.layer_norm", False, 0, lambda v: v * 0),
        ("another eps", "MintFunctional.layer_norm", False, 0, lambda v: normed(x, one, zero, eps)),
    ]


def plant(folder, dtype):
    """Write a dump, and return the name of each call -> (kind of fault or "none", direction)."""
    device, right, planted, used = Device(folder), calls(dtype), {}, Counter()
    none = [("none", key, bool(right[key][2]), 0, lambda v: v) for key in right]
    for kind, key, is_gradient, place, change in [*none, *faults(dtype)]:
        inputs, outputs, sens, gradients = right[key]
        lists = [list(outputs), list(gradients or [])]
        lists[is_gradient][place] = change(lists[is_gradient][place])
        device.forward(key, inputs, lists[0], dtype, number=used[key])
        if sens:
            device.backward(key, sens, lists[1], dtype, number=used[key])
        planted[f"{key}.{used[key]}"] = (kind, "backward" if is_gradient else "forward")
        used[key] += 1
    device.write()
    return planted


def named_by_replay(folder):
    """Return call -> whether it is named, or None if it was not checked."""
    found = {}
    for call in probe.replay(folder):
        key, _, _ = call.name.rpartition(".")
        named = None if call.verdict == "not replayable" else call.verdict != "ok"
        found[key] = named if found.get(key) is None else found[key] or named
    return found


def named_by_acc_check(python, folder, out):
    """Return the same of msprobe."""
    document = next(folder.rglob("dump.json"))
    command = [python, "-c", ACC_CHECK, "acc_check", "-api_info", str(document), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    tables = sorted(out.glob("accuracy_checking_result_*.csv"))
    if not tables:
        raise SystemExit(done.stdout[-3000:] + done.stderr[-3000:])
    found = {}
    with open(tables[-1], encoding="utf-8-sig") as file:
        for row in csv.reader(file):
            said = {word.lower() for word in row[1:3]}
            found[row[0]] = True if "error" in said else False if "pass" in said else None
    return found


def main():
    """Print the table in Markdown."""
    python = sys.argv[1]
    rows, told = {}, []
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(sys.argv[2] if len(sys.argv) > 2 else temporary)
        for dtype in ROUNDING:
            planted = plant(work / dtype, dtype)
            both = (
                named_by_replay(work / dtype),
                named_by_acc_check(python, work / dtype, work / f"{dtype}-out"),
            )
            for call, (kind, direction) in planted.items():
                counts = rows.setdefault(kind, Counter())
                counts["all"] += 1
                for tool, found in zip(("replay", "acc_check"), both):
                    counts[tool] += found.get(call) is True
                    if found.get(call) is None:
                        counts[f"{tool} unchecked"] += 1
                    if found.get(call) is not (kind != "none"):
                        told.append(
                            f"{tool}: {dtype} {call} {direction}, {kind}: {found.get(call)}"
                        )
    print("| planted | calls | `probe replay` | `msprobe acc_check` |\n|---|---|---|---|")
    for kind, counts in rows.items():
        sides = [
            f"{counts[tool]}"
            + (f", {counts[f'{tool} unchecked']} not checked" * bool(counts[f"{tool} unchecked"]))
            for tool in ("replay", "acc_check")
        ]
        print(f"| {kind} | {counts['all']} | {sides[0]} | {sides[1]} |")
    print("\n".join(told))


if __name__ == "__main__":
    main()

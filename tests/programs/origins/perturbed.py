# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Is one run whose parameters were moved by one rounding enough of a tolerance? Three trials.

    python -m tests.programs.origins.perturbed [--trial orders,faults,kernels] [--keep DIR] [--reuse] [--seed N]

* orders: sums in 8 other orders, in bfloat16, in 4 nets: none may be blamed.
* faults: the planted faults in trainings whose parameters are moved too: of those that are named with equal bits, two
  may be missed.
* kernels: a device with two roundings per number, sums in another order and HF32 products has one wrong kernel.

bfloat16 and the device are those of the simulated Ascend. Exit status 1 when a trial fails.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import probe
from tests.ascend import simulator
from tests.programs.origins.cases import FAULTS, HARMLESS
from tests.programs.origins.planted import Recorder
from tests.support.paths import ROOT, environment

ROUNDING = "ulp=2 order hf32"
#: (net, a kernel, the first call that is wrong, how many are, by how much, the calls that may be named)
KERNELS = (
    ("gpt", "aclnnSoftmax", 1, -1, 20_000, "softmax"),
    ("gpt", "aclnnErf", 1, -1, 20_000, "gelu"),
    ("gpt", "aclnnPowTensorTensor", 2, 1, 30_000, "pow"),
    ("gpt", "aclnnMatmul", 3, 1, 30_000, "matmul"),
    ("mlp", "aclnnTanh", 2, 1, 30_000, "tanh"),
    ("mlp", "aclnnSigmoid", 1, -1, 20_000, "sigmoid"),
    ("mlp", "aclnnMean", 1, -1, 20_000, "mean"),
    ("rnn", "aclnnTanh", 3, 1, -1, "tanh"),
    ("rnn", "aclnnTanhBackward", 1, -1, 30_000, "tanh.*backward"),
    ("convolution", "Conv2D", 2, 1, 30_000, "conv"),
)  # fmt: skip


def record(job):
    """Record trainings in this process: "device dtype net change seed folder" each; a seed below 0 moves nothing."""
    import mindspore as ms

    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device(job["device"])
    from probe.config.config_file import ConfigFile
    from probe.debugger import open_session
    from probe.launch.perturb import Perturbation
    from tests.programs.origins.orders import train

    for name, change, seed, folder in job["runs"]:
        settings = Path(f"{folder}.json")
        settings.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        content = {
            "task": "statistics",
            "level": "mix",
            "dump_path": folder,
            "measure": "host",
            "statistics": {},
        }
        settings.write_text(json.dumps(content))
        source = ConfigFile(str(settings))
        perturbation = Perturbation("parameters" if seed >= 0 else "", source, max(seed, 0))
        session = open_session(source)
        dtype = getattr(ms, job["dtype"])
        train(
            name,
            change,
            dtype,
            session,
            lambda net, found=perturbation: found.parameters(net.get_parameters()),
        )


def start(device, dtype, runs, **variables):
    """Record trainings in a process of their own, on CPU or on the simulated Ascend."""
    job = json.dumps(
        {"device": device, "dtype": dtype, "runs": [[*run[:3], str(run[3])] for run in runs]}
    )
    base = (
        environment()
        if device == "CPU"
        else {**environment(), **simulator.environment(simulator.build())}
    )
    command = [sys.executable, "-m", "tests.programs.origins.perturbed", "--record", job]
    if subprocess.run(command, check=False, cwd=ROOT, env={**base, **variables}).returncode:
        raise SystemExit(f"recording failed: {job}")


def row(*cells):
    """Print a line of the table."""
    print(" | ".join(map(str, cells)), flush=True)


def told(comparison):
    """Return the first origin as a text."""
    first = comparison.first
    return (
        "nothing"
        if first is None
        else f"{first.kind}: {first.name} {first.place} [{first.cell}] step {first.step}"
    )


def orders(folder, given):
    """Return whether no other order of sums is blamed."""
    from tests.programs.origins.orders import NETS, ORDERS

    if not given.reuse:
        runs = [(net, "", -1, folder / net / "golden") for net in NETS]
        runs += [(net, "", given.seed, folder / net / "moved") for net in NETS]
        runs += [
            (net, change, -1, folder / net / change.replace(" ", "_"))
            for net in NETS
            for change in ORDERS
        ]
        start("Ascend", "bfloat16", runs)
    blamed = bits = 0
    for net in NETS:
        for change in ORDERS:
            golden, mine = folder / net / "golden", folder / net / change.replace(" ", "_")
            found = probe.compare(golden, mine, noise=folder / net / "moved")
            plain = probe.compare(golden, mine, tolerance=0.0)
            blamed += not found.ok
            bits += not plain.ok
            row("orders", net, change, "not blamed" if found.ok else "BLAMED", told(found))
    count = len(NETS) * len(ORDERS)
    print(f"orders: {blamed} of {count} blamed; {bits} of {count} have other bits")
    return not blamed


def faults(folder, given):
    """Return whether at most two planted faults fewer are named than with equal bits."""
    golden = Recorder(folder / "mine", "statistics", -given.seed - 2)
    moved = Recorder(folder / "moved", "statistics", -given.seed - 1)
    named = equal = blamed = 0
    for kind in ("gpt", "digits", "ranks"):
        changes = [item.change for item in (*FAULTS, *HARMLESS) if item.kind == kind]
        bare = Recorder(folder / "bits", "statistics", 0.0)
        if not given.reuse:
            golden.record(kind, changes)
            moved.record(kind, [""])
            bare.record(kind, changes)
        for case in (item for item in (*FAULTS, *HARMLESS) if item.kind == kind):
            found = probe.compare(
                golden.path(kind, "golden"),
                golden.path(kind, case.change),
                noise=moved.path(kind, ""),
            )
            is_fault = hasattr(case, "part")
            well = case.is_named(found.first) if is_fault else found.ok
            named += is_fault and well
            blamed += not is_fault and not well
            if is_fault:
                same = probe.compare(bare.path(kind, "golden"), bare.path(kind, case.change))
                equal += case.is_named(same.first)
            row(
                "faults",
                kind,
                case.change or "the same again",
                "yes" if well else "NO",
                told(found),
            )
    print(
        f"faults: {named} of {len(FAULTS)} named, with equal bits {equal}; {blamed} harmless ones blamed"
    )
    return named >= equal - 2 and not blamed


def kernels(folder, given):
    """Return whether at least nine of ten wrong kernels are named, and none where all are right."""
    nets = sorted({case[0] for case in KERNELS})
    if not given.reuse:
        runs = [(net, "", -1, folder / net / "golden") for net in nets]
        start(
            "CPU",
            "float32",
            [*runs, *((net, "", given.seed, folder / net / "moved") for net in nets)],
        )
        right = [(net, "", -1, folder / net / "right") for net in nets]
        start("Ascend", "float32", right, ASCEND_SIM_ROUNDING=ROUNDING)
    named = 0
    for net in nets:
        found = probe.compare(
            folder / net / "golden", folder / net / "right", noise=folder / net / "moved"
        )
        notes = [str(note) for unit in found.units[:1] for note in unit.notes]
        row("kernels", net, "all right", "not blamed" if found.ok else "BLAMED", told(found), notes)
        named -= not found.ok
    for number, (net, kernel, first, count, size, wanted) in enumerate(KERNELS):
        mine = folder / net / f"wrong{number}"
        if not given.reuse:
            plan = ";".join(
                f"wrong run {name} {first} {count} {size}" for name in kernel.split("|")
            )
            start(
                "Ascend",
                "float32",
                [(net, "", -1, mine)],
                ASCEND_SIM_ROUNDING=ROUNDING,
                ASCEND_SIM_PLAN=plan,
            )
        found = probe.compare(folder / net / "golden", mine, noise=folder / net / "moved")
        well = (
            found.first is not None
            and re.search(wanted, found.first.name, re.IGNORECASE) is not None
        )
        named += well
        row("kernels", net, kernel, first, count, size, "yes" if well else "NO", told(found))
    print(f"kernels: {named} of {len(KERNELS)} named")
    return named >= 0.9 * len(KERNELS)


TRIALS = {"orders": orders, "faults": faults, "kernels": kernels}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trial", default=",".join(TRIALS))
    parser.add_argument("--keep", default="")
    parser.add_argument("--reuse", action="store_true", help="the dumps are in --keep already")
    parser.add_argument(
        "--seed", type=int, default=0, help="the direction in which parameters are moved"
    )
    parser.add_argument("--record", default="")
    given = parser.parse_args()
    if given.record:
        record(json.loads(given.record))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(given.keep or scratch).resolve()
        done = [TRIALS[name](folder / name, given) for name in given.trial.split(",")]
    return int(not all(done))


if __name__ == "__main__":
    raise SystemExit(main())

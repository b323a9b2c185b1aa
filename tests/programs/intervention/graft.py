# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Puts the golden output of the faulty call into the trainings with the planted faults: do the losses agree again?

    python -m tests.programs.intervention.graft [--only scale,mask]

The faults are those of tests/programs/origins/cases.py, but for the four of two ranks. Of each the largest relative
distance from the golden losses is shown, without and with the graft. Exit status 1 where fewer than 20 agree again
from the first step on, within 0.000001, by the answer of the command.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.programs.origins.cases import FAULTS
from tests.support.paths import ROOT, environment

WITHIN = 1e-6
TRAINING = "tests.programs.intervention.planted_training"
UPDATE = "Cell.optimizer.AdamWeightDecay"
#: change -> the calls whose output becomes the golden's
CALLS = {
    "epsilon": ["blocks.1.norm1"],
    "mask": ["blocks.1.attention"],
    "q and k swapped": ["blocks.1.attention"],
    "scale": ["blocks.1.attention"],
    "axis": ["Functional.softmax.1"],
    "bfloat16 cast": ["blocks.1.attention"],
    "other activation": ["blocks.1"],
    "stop_gradient": [UPDATE],
    "wrong bprop": [UPDATE],
    "loss scale": [UPDATE],
    "other batch": ["tokens"],
    "labels are the inputs": ["Functional.cross_entropy.0"],
    "one weight": ["blocks.1.norm2"],
    "weight transposed": ["blocks.1.attention.v"],
    "learning rate": [UPDATE],
    "no clipping": [UPDATE],
    "BatchNorm epsilon": ["norm"],
    "dropout seed": ["drop"],
    "normalisation": ["conv"],
    "other pooling": ["pool"],
}


def losses_of(folder, kind, change):
    """Return the answer of the command for one fault."""
    words = [
        sys.executable,
        "-m",
        "probe",
        "try",
        "-o",
        str(folder / f"{kind}-{change}"),
        "--json",
        "-",
        "--within",
        str(WITHIN),
    ]
    for call in CALLS[change]:
        words += ["--from", str(folder / kind), call]
    done = subprocess.run(
        [*words, "-m", TRAINING, kind, change],
        check=False,
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def far(losses, golden):
    """Return the largest part of the golden loss by which a loss differs, of all steps."""
    return max(abs(losses[step] - golden[step]) / abs(golden[step]) for step in golden)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", default="")
    given, count = parser.parse_args(), 0
    with tempfile.TemporaryDirectory() as scratch:
        folder, wanted = (
            Path(given.keep or scratch),
            [name for name in given.only.split(",") if name],
        )
        for kind in ("gpt", "digits"):
            if not (folder / kind).exists():
                command = [sys.executable, "-m", TRAINING, kind, "", str(folder / kind)]
                subprocess.run(
                    command, check=True, cwd=ROOT, env=environment(), capture_output=True
                )
        for fault in FAULTS:
            if fault.change not in CALLS or (wanted and fault.change not in wanted):
                continue
            answer = losses_of(folder, fault.kind, fault.change)
            parts = [far(answer[name], answer["golden"]) for name in ("unchanged", "changed")]
            agrees = answer["agrees_from"] == 0 and parts[1] <= WITHIN
            count += agrees
            told = f"{fault.kind} | {fault.change} | {', '.join(CALLS[fault.change])} | {parts[0]:.2g} | {parts[1]:.2g}"
            print(f"{'yes' if agrees else 'NO'} | {told}", flush=True)
    print(f"{count} of {len(FAULTS)} agree with the golden run again")
    return int(count < (len(wanted) or 20))


if __name__ == "__main__":
    sys.exit(main())

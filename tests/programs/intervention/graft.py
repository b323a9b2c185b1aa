# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Puts the golden output of the faulty call into the trainings with the planted faults: do the losses agree again?

    python -m tests.programs.intervention.graft [--only scale,mask]

The faults are those of tests/programs/origins/cases.py. Of each the losses are shown: without the graft, with it, golden.
Exit status 1 where fewer than 20 of 24 agree again, or the answer of the command does not say so.
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

TRAINING = "tests.programs.intervention.planted_training"
UPDATE = "Cell.optimizer.AdamWeightDecay"
#: change -> the calls whose output becomes the golden's
CALLS = {
    "epsilon": ["blocks.1.norm1"], "mask": ["blocks.1.attention"], "q and k swapped": ["blocks.1.attention"],
    "scale": ["blocks.1.attention"], "axis": ["Functional.softmax.1"], "bfloat16 cast": ["blocks.1.attention"],
    "other activation": ["blocks.1"], "stop_gradient": [UPDATE], "wrong bprop": [UPDATE], "loss scale": [UPDATE],
    "other batch": ["tokens"], "labels are the inputs": ["Functional.cross_entropy.0"],
    "one weight": ["blocks.1.norm2"], "weight transposed": ["blocks.1.attention.v"], "learning rate": [UPDATE],
    "no clipping": [UPDATE], "BatchNorm epsilon": ["norm"], "dropout seed": ["drop"], "normalisation": ["conv"],
    "other pooling": ["pool"],
}  # fmt: skip


def losses_of(folder, kind, change, more):
    """Return the answer of the command for one fault."""
    words = [sys.executable, "-m", "probe", "try", "-o", str(folder / f"{kind}-{change}"), "--json", "-"]
    for call in [*CALLS[change], *more]:
        words += ["--from", str(folder / kind), call]
    done = subprocess.run(
        [*words, "-m", TRAINING, kind, change], check=False, cwd=ROOT, env=environment(), capture_output=True, text=True
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
    parser.add_argument("--more", default="", help="further calls that are put in")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, wanted = Path(given.keep or scratch), [name for name in given.only.split(",") if name]
        for kind in ("gpt", "digits"):
            if not (folder / kind).exists():
                command = [sys.executable, "-m", TRAINING, kind, "", str(folder / kind)]
                subprocess.run(command, check=True, cwd=ROOT, env=environment(), capture_output=True)
        for fault in FAULTS:
            if fault.change not in CALLS or (wanted and fault.change not in wanted):
                continue
            answer = losses_of(folder, fault.kind, fault.change, [word for word in given.more.split(",") if word])
            parts = [far(answer[name], answer["golden"]) for name in ("unchanged", "changed")]
            print(f"{fault.kind} | {fault.change} | {CALLS[fault.change]} | {parts[0]:.2g} | {parts[1]:.2g}", {s: f"{abs(answer['changed'][s]-v)/v:.1g}" for s,v in answer['golden'].items()}, answer["agrees_from"], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

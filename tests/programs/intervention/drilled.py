# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Drills five examples, LeNet and five public nets: is each fault of the largest size named, and no clean run?

    python -m tests.programs.intervention.drilled [--only train.py] [--jobs 2] [--keep DIR]   (needs the package mindcv)

Prints the seconds of each drill. Exit status 1 where a largest fault has no name, or a clean run has an alarm.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.programs.intervention.public_training import NETS
from tests.support.paths import ROOT, environment

PUBLIC = "tests.programs.intervention.public_training"
TRAININGS = {
    "train.py": ["examples/train.py"],
    "train_loop.py": ["examples/train_loop.py", "--steps", "32"],
    "train_model.py": ["examples/train_model.py"],
    "train_gpt.py": ["examples/train_gpt.py"],
    "train_ranks.py": ["--ranks", "2", "examples/train_ranks.py"],
    "lenet": ["-m", PUBLIC, "lenet"],
    **{name: ["-m", PUBLIC, name, "16"] for name in NETS},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", default="")
    parser.add_argument("--jobs", default="2")
    given, failed = parser.parse_args(), 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, words in TRAININGS.items():
            if given.only not in name:
                continue
            folder, begin = Path(given.keep or scratch) / name, time.monotonic()
            command = [
                sys.executable,
                "-m",
                "probe",
                "drill",
                "-o",
                str(folder),
                "--jobs",
                given.jobs,
                "--json",
                "-",
            ]
            done = subprocess.run(
                [*command, *words],
                check=False,
                cwd=ROOT,
                env=environment(),
                capture_output=True,
                text=True,
            )
            if done.returncode == 2:
                print(f"{name}: {done.stderr[-500:]}", flush=True)
                failed += 1
                continue
            answer = json.loads(done.stdout)
            failed += done.returncode
            named = sum(bool(row["by"]) for row in answer["faults"])
            print(
                f"{name}: {named} of {len(answer['faults'])} named, largest missed: {answer['missed']}, "
                f"alarms on the clean run: {len(answer['false'])}, {time.monotonic() - begin:.0f} s",
                *(
                    f"    {one['fault']} {one['size']:g}: {one['by']}, {one['after']}"
                    for one in answer["faults"]
                ),
                *answer["false"],
                sep="\n",
                flush=True,
            )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Plants one or two faults of half precision among the 64 Cells of a GPT: does `probe bisect` find them?

    python -m tests.programs.intervention.bisect [--only close]

One must be found in at most 8 runs, a pair in at most 20. Exit status 1 where one is not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.paths import ROOT, environment

PROGRAM = "tests.programs.intervention.half_gpt"
#: kind, Cells
CASES = (
    ("overflow", ("tokens",)), ("overflow", ("blocks.3.up",)), ("overflow", ("blocks.4.attention",)),
    ("overflow", ("head",)), ("overflow", ("blocks.0.attention.q", "blocks.5.down")),
    ("overflow", ("blocks.3.up", "blocks.3.down")), ("coarse", ("blocks.3.attention.v",)),
    ("coarse", ("blocks.5.norm2",)), ("coarse", ("blocks.1.up", "blocks.4.attention.o")),
)  # fmt: skip


def bisect(folder, kind, cells):
    """Return the answer of the command."""
    until = "finite" if kind == "overflow" else f"close to {folder}/golden within 0.0003"
    command = [
        sys.executable,
        "-m",
        "probe",
        "bisect",
        "--float32",
        "--until",
        until,
        "--steps",
        "2",
        "--json",
        "-",
    ]
    command += ["-o", str(folder / "-".join(cells)), "-m", PROGRAM, f"--{kind}", ",".join(cells)]
    done = subprocess.run(
        command, check=False, cwd=ROOT, env=environment(), capture_output=True, text=True
    )
    if done.returncode == 2:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="the cases with this text")
    given, failed = parser.parse_args(), 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        golden = [
            sys.executable,
            "-m",
            "probe",
            "try",
            "--seed",
            "1",
            "-o",
            f"{folder}/golden",
            "--steps",
            "2",
        ]
        subprocess.run(
            [*golden, "-m", PROGRAM, "--single"],
            check=True,
            cwd=ROOT,
            env=environment(),
            capture_output=True,
        )
        for kind, cells in CASES:
            if given.only not in f"{kind} {cells}":
                continue
            answer = bisect(folder, kind, cells)
            count, most = len(answer["runs"]), 8 if len(cells) == 1 else 20
            is_right = sorted(answer["found"]) == sorted(cells) and count <= most
            failed += not is_right
            among, found = answer["facts"].get("count"), ", ".join(answer["found"])
            told = f"{kind} in {', '.join(cells)} | {found} of {among} | {count} runs of {most}"
            print(f"{'yes' if is_right else 'NO'} | {told}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Plants every fault and every harmless change, compares, and says what was named.

    python -m tests.programs.origins.planted [--mode statistics] [--noise 1e-6] [--only scale,mask] [--keep DIR]
        [--live] [--peer PYTHON]

With ``--live`` each change is also trained beside the golden run, which must name the same first difference.
Exit status 1 when a fault that must be named is not, or a harmless change is blamed.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import tempfile
from pathlib import Path

import probe
from tests.programs.origins.cases import FAULTS, HARMLESS
from tests.support.launch import launch
from tests.support.paths import ROOT, environment, program


class Recorder:
    """Records a training with each change once, in a process of its own for each kind.

    Args:
        folder: where the dumps are.
        mode: "statistics", "md5" or "tensor".
        noise: the relative noise on the weights of what is not golden.
    """

    def __init__(self, folder, mode, noise):
        self.folder, self.mode, self.noise, self.live = Path(folder).resolve(), mode, noise, False

    def record(self, kind, changes):
        """Record the golden run and every change."""
        folder = self.folder / kind
        folder.mkdir(parents=True, exist_ok=True)
        if kind == "ranks":
            wanted = ";".join(changes if self.live else ["golden", *changes])
            live = ["live"] if self.live else []
            launch(
                "../origins/ranks.py", 2, folder, self.mode, self.noise, wanted, *live, limit=600
            )
            return
        wanted = ";".join(change or "again" for change in changes)
        arguments = ["--record", kind, "--mode", self.mode, "--noise", self.noise, "--keep", folder]
        command = program(
            "origins.planted", *arguments, "--only", wanted, *(["--live"] if self.live else [])
        )
        done = subprocess.run(command, check=False, cwd=ROOT, env=environment())
        if done.returncode:
            raise SystemExit(f"recording {kind} failed")

    def path(self, kind, change):
        """Return where the dump of a change is."""
        return self.folder / kind / (change.replace(" ", "_") or "again")

    def live_finding(self, kind, change):
        """Return the first difference that was named while a change was trained beside the golden run; {} for none."""
        found = sorted(
            Path(f"{self.path(kind, change)}.live").rglob("golden.json"), key=os.path.getmtime
        )
        origins = json.loads(found[-1].read_text())["origins"] if found else []
        return shown(origins[0]) if origins else {}


#: the parts of a finding that are compared
_SHOWN = ("kind", "name", "place", "cell", "step", "rank", "sentence", "file", "line", "source")


def shown(finding):
    """Return these parts of a finding; {} for none."""
    return {key: finding[key] for key in _SHOWN} if finding else {}


def record_here(kind, changes, folder, mode, noise, live):
    """Record in this process."""
    import mindspore as ms

    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    from probe import PrecisionDebugger
    from tests.programs.origins.models import train

    task = "tensor" if mode == "tensor" else "statistics"
    for change in changes if live else ["golden", *changes]:
        name = (change.replace(" ", "_") or "again") + ".live" * live
        path = os.path.join(folder, f"{name}.json")
        settings = {"task": task, "level": "mix", "dump_path": os.path.join(folder, name)}
        settings[task] = {"summary_mode": "md5"} if mode == "md5" else {}
        if live:
            settings["golden"] = {"path": os.path.join(folder, "golden")}
        with open(path, "w") as file:
            json.dump(settings, file)
        train(
            kind,
            "" if change == "golden" else change,
            PrecisionDebugger(config_path=path),
            0.0 if change == "golden" else noise,
        )


def first_that_differs(comparison):
    """Return the call that the usual rule blames: the first whose inputs agree and whose output does not."""
    bad = {"differs", "shape", "one side"}
    calls = {}
    for row in comparison.table():
        if row["place"] is None or row["call_b"] is None:
            continue
        state = calls.setdefault((row["step"], row["rank"], row["call_b"]), [False, False])
        state[row["place"].startswith("output")] |= row["verdict"] in bad
    return next((key for key, (inputs, outputs) in calls.items() if outputs and not inputs), None)


def of_msprobe(python, golden, mine, scratch):
    """Return the first row of msprobe's table that is no pass, or what it says."""
    for step in (0, 1):
        out = Path(tempfile.mkdtemp(dir=scratch))
        folders = [
            sorted((path / f"step{step}").iterdir())[0] / "dump.json" for path in (mine, golden)
        ]
        command = [
            str(Path(python).parent / "msprobe"),
            "compare",
            "-tp",
            str(folders[0]),
            "-gp",
            str(folders[1]),
            "-o",
            str(out),
        ]
        variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        subprocess.run(command, capture_output=True, check=False, env=variables)
        tables = sorted(out.rglob("compare_result*.csv"))
        if not tables:
            return "no table"
        with open(tables[0], newline="") as file:
            for row in csv.DictReader(file):
                if row.get("Result") not in ("pass", None, ""):
                    return f"step {step}: {row.get('NPU Name')}: {row.get('Result')}"
    return "nothing"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", default="statistics", choices=("statistics", "md5", "tensor"))
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", default="")
    parser.add_argument("--kinds", default="gpt,digits,ranks")
    parser.add_argument("--record", default="")
    parser.add_argument("--peer", default="")
    parser.add_argument("--live", action="store_true", help="train beside the golden run too")
    parser.add_argument("--reuse", action="store_true", help="the dumps are in --keep already")
    given = parser.parse_args()
    if given.record:
        changes = ["" if change == "again" else change for change in given.only.split(";")]
        record_here(given.record, changes, given.keep, given.mode, given.noise, given.live)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        return run(given, given.keep or scratch, scratch)


def run(given, folder, scratch):
    wanted = [name for name in given.only.split(",") if name]
    recorder = Recorder(folder, given.mode, given.noise)
    kinds = given.kinds.split(",")
    faults = [
        fault for fault in FAULTS if fault.kind in kinds and (not wanted or fault.change in wanted)
    ]
    harmless = [
        item
        for item in HARMLESS
        if item.kind in kinds and (not wanted or (item.change or "the same again") in wanted)
    ]
    for recorder.live in (False, True)[: 1 + given.live] if not given.reuse else ():
        for kind in kinds:
            changes = [item.change for item in (*faults, *harmless) if item.kind == kind]
            if changes:
                recorder.record(kind, list(dict.fromkeys(changes)))
    rows, named, blamed, others = [], 0, 0, 0
    for case in (*faults, *harmless):
        golden, mine = recorder.path(case.kind, "golden"), recorder.path(case.kind, case.change)
        comparison = probe.compare(golden, mine)
        first = comparison.first
        is_fault = hasattr(case, "part")
        well = case.is_named(first) if is_fault else comparison.ok
        named += is_fault and well
        blamed += not is_fault and not well
        said = "nothing"
        if first is not None:
            said = f"{first.kind}: {first.name} {first.place} [{first.cell}] step {first.step} rank {first.rank}"
        usual = first_that_differs(comparison)
        row = [
            case.kind,
            case.change or "the same again",
            "yes" if well else "NO",
            said,
            str(usual and usual[2]),
        ]
        if given.live:
            live, after = (
                recorder.live_finding(case.kind, case.change),
                shown(first and first.to_dict()),
            )
            others += live != after
            row.append("live the same" if live == after else f"LIVE: {live or 'nothing'}")
        if given.peer:
            row.append(of_msprobe(given.peer, golden, mine, scratch))
        rows.append(row)
        print(" | ".join(row), flush=True)
    faults_wanted = 16 if given.noise else 18 if given.mode == "statistics" else 20
    wanted_count = len(faults) if wanted else faults_wanted * len(FAULTS) // 20
    counts = f"{named} of {len(faults)} faults named, {blamed} of {len(harmless)} harmless changes blamed"
    print(f"{given.mode}, noise {given.noise:g}: {counts}")
    if given.live:
        print(
            f"beside the golden run: {len(rows) - others} of {len(rows)} have the same first difference"
        )
    return int(named < min(wanted_count, len(faults)) or blamed > 0 or others > 0)


if __name__ == "__main__":
    raise SystemExit(main())

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Changes one place of a public net, records, compares, and says whether the place was named first.

    python -m tests.programs.mutants.bench [--count 200] [--harmless 40] [--seed 1] [--nets gpt,vit] [--keep DIR]
        [--reuse] [--tensor 20] [--json FILE] [--only KIND]

Needs the package mindcv on the path (``make mutants`` puts it there). Prints a line for each mutant that was not named,
and a table by class. Exit status 1 below 97 % or with a harmless change that was blamed.
"""

from __future__ import annotations

import argparse
import json
import pickle
import random
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import mindspore  # noqa: F401 - the children have it
import numpy as np

import probe
from tests.programs.mutants import edits, spots, trainings
from tests.programs.mutants.recording import HERE, NETS, is_edit, record, source_of, without_crc


def choices(name, ran, rng):
    """Return the changes of a net in a random order, of each class by turns: faults, and harmless ones."""
    found = [
        ("net", edit)
        for edit in edits.find(source_of(NETS[name].module).read_text(), set(ran["net"]))
    ]
    found += [
        ("loop", edit) for edit in edits.find((HERE / "loop.py").read_text(), set(ran["loop"]))
    ]
    found += [
        ("net", edit)
        for edit in spots.find_spots(source_of(NETS[name].module).read_text())
        if not ran["net"] or edit.line in ran["net"]
    ]
    faults, harmless = defaultdict(list), defaultdict(list)
    for item in found:
        (harmless if item[1].harmless else faults)[item[1].kind].append(item)
    for kind in trainings.KINDS:
        faults[kind] += [trainings.Change(kind, rng.randrange(1000)) for _ in range(2)]
    for kind in trainings.HARMLESS:
        harmless[kind] = [trainings.Change(kind, rng.randrange(1000), True)]
    return _by_turns(faults, rng), _by_turns(harmless, rng)


def _by_turns(groups, rng):
    groups = [rng.sample(items, len(items)) for _, items in sorted(groups.items())]
    rng.shuffle(groups)
    order = []
    while any(groups):
        order += [items.pop() for items in groups if items]
    return order


def label(change):
    """Return a short text for a change."""
    if is_edit(change):
        return f"{change[1].kind} ({change[0]} line {change[1].line})"
    return f"{change.kind} {change.seed}" if change is not None else "golden"


def is_named(origin, change, truth, module):  # noqa: PLR0911, PLR0912 - a list of rules
    """Return whether an origin is the changed line, Cell, parameter or value."""
    if origin is None:
        return False
    cell = f".{origin.cell or ''}."
    if is_edit(change):
        where, edit = change
        file = "loop.py" if where == "loop" else module
        lines = [(origin.file or "", origin.line or 0)]
        if any(path.endswith(file) and edit.line <= line <= edit.end for path, line in lines):
            return True
        if edit.attribute and f".{edit.attribute}." in cell:
            return True
        if "init" in edit.method and origin.kind == "parameter":
            return True  # another initial value
        if edit.kind in ("call left out", "rotary left out") and any(
            f"{file}, line {edit.line}," in frame for frame in origin.stack
        ):
            return True  # a call inside of the one that was left out
        if edit.kind in ("values exchanged", "names exchanged") and cell.endswith(
            f".{edit.owner}."
        ):
            return True  # the values are exchanged in one line, and used in others
        if edit.kind == "names exchanged" and origin.kind == "wiring":
            return any(
                path.endswith(file) and 0 < line - edit.end <= 8 for path, line in lines
            )  # likewise
        if (
            edit.owner == "OwnAdam"
            and origin.kind == "argument"
            and "self.count" in (origin.source or "")
        ):
            return True  # a number of Python: it is seen where calls are given it
        if (
            edit.kind == "epsilon"
            and edit.method == "__init__"
            and origin.place == "attributes.epsilon"
        ):
            return True
        if edit.method == "__init__":
            return bool(edit.owner) and cell.endswith(f".{edit.owner}.")
        if where == "loop" and edit.method == "make_optimizer":
            return origin.kind == "optimizer"
        return where == "loop" and "label_smoothing" in edit.kind and "cross_entropy" in origin.name
    kind = change.kind
    if kind in ("learning rate", "optimizer momentum", "weight decay"):
        own = origin.kind == "argument" and "self.rate" in (
            origin.source or ""
        )  # of an optimizer of one's own
        return origin.kind == "optimizer" or (own and kind == "learning rate")
    if kind in PERMUTATIONS and "summary_mode md5" in origin.sentence:
        return True  # statistics cannot tell a permutation, and the sentence says so
    if kind in ("rolled labels", "batch reversed", "batch scaled", "one row"):
        return origin.kind == "data"
    place = f".{origin.name}.{origin.place}."
    above, _, last = (truth or "").rpartition(".")
    near = ".".join(
        above.split(".")[-2:]
    )  # mindcv names the parameters of some Cells without their whole path
    in_cell = f".{near}." in cell if above else True
    if kind.startswith(("BatchNorm", "LayerNorm")):
        return cell.startswith(f".{truth}.")
    if kind == "frozen":
        if truth and origin.kind == "optimizer" and origin.place.endswith(f".{truth}"):
            return True  # the optimizer that is made of the trainable parameters lacks it
        return (f".{last}." in place and in_cell) or (in_cell and origin.kind == "gradient")
    return (f".{last}." in place and in_cell) or (
        bool(above) and in_cell and origin.kind == "computation"
    )


#: changes of an optimizer, which the next step shows
LATE = (
    "optimizer", "optimizer momentum", "learning rate", "weight decay", "epsilon", "own moments", "bias correction",
    "coupled decay", "own epsilon", "own rate",
)  # fmt: skip
PERMUTATIONS = ("rolled labels", "batch reversed", "rows exchanged", "weight transposed")


class Bench:
    """Records and judges mutants.

    Args:
        folder: where the dumps are.
        task: the task that records them.
    """

    def __init__(self, folder, task="statistics"):
        self.folder, self.task = Path(folder), task
        self.golden = {}

    def record_golden(self, name, reuse):
        """Record the golden run of a net."""
        known = self.folder / name / "golden.known"
        if reuse and known.exists():
            self.golden[name] = pickle.loads(known.read_bytes())
            return
        found = record(name, None, self.folder / name / "golden", self.task)
        if "skip" in found:
            raise SystemExit(f"{name}: {found['skip']}")
        known.write_bytes(pickle.dumps(found))
        without_crc(self.folder / name / "golden", self.folder / name / "golden.statistics")
        self.golden[name] = found

    def record(self, name, number, change):
        """Record a mutant; return what is known of it."""
        folder = self.folder / name / f"m{number}"
        found = record(name, change, folder, self.task)
        golden = self.golden[name]
        found["effect"] = (
            "skip" in found or found["losses"] != golden["losses"] or found["end"] != golden["end"]
        )
        (folder.parent / f"m{number}.known").write_bytes(pickle.dumps((change, found)))
        if "skip" not in found:
            without_crc(folder, self.folder / name / f"m{number}.statistics")
        return found

    def judge(self, name, number, change, found, mode):
        """Return (well, comparison) of a recorded mutant."""
        end = ".statistics" if mode == "statistics" else ""
        comparison = probe.compare(
            self.folder / name / f"golden{end}", self.folder / name / f"m{number}{end}"
        )
        harmless = change[1].harmless if is_edit(change) else change.harmless
        if harmless:
            return comparison.ok, comparison
        module = source_of(NETS[name].module).name
        return is_named(comparison.first, change, found.get("truth"), module), comparison


def main():
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=220)
    parser.add_argument("--harmless", type=int, default=48)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--keep", default="")
    parser.add_argument("--reuse", action="store_true", help="judge the dumps that are in --keep")
    parser.add_argument(
        "--only", default="", help="judge only classes with this text in their name"
    )
    parser.add_argument("--modes", default="statistics,md5")
    parser.add_argument("--task", default="statistics", choices=("statistics", "tensor"))
    given = parser.parse_args()
    folder = given.keep or tempfile.mkdtemp()
    try:
        return run(given, folder)
    finally:
        if not given.keep:
            shutil.rmtree(folder)


def run(given, folder):
    """Record what is not there, judge all, print the tables."""
    bench, names = Bench(folder, given.task), given.nets.split(",")
    per_net = -(-given.count // len(names)), -(-given.harmless // len(names))
    rows = []
    for name in names:
        bench.record_golden(name, given.reuse)
        if given.reuse:
            known = sorted(
                (Path(folder) / name).glob("m*.known"), key=lambda path: int(path.stem[1:])
            )
            items = [(int(path.stem[1:]), *pickle.loads(path.read_bytes())) for path in known]
        else:
            items = record_all(bench, name, per_net, random.Random(f"{given.seed} {name}"))
        for number, change, found in items:
            kind = change[1].kind if is_edit(change) else change.kind
            if "skip" in found or kind == "noise" or given.only not in kind:
                continue
            rows += judged(bench, name, number, change, found, given.modes.split(","))
    return report(rows)


def record_all(bench, name, wanted, rng):
    """Record so many faults and harmless changes of a net that have an effect, or should have none."""
    faults, harmless = choices(name, bench.golden[name]["ran"], rng)
    items, begin = [], time.time()
    for most, changes in zip(wanted, (faults, harmless)):
        count = 0
        for change in changes:
            if count >= most:
                break
            number = len(items)
            found = bench.record(name, number, change)
            items.append((number, change, found))
            count += "skip" not in found and (found["effect"] or changes is harmless)
    print(
        f"# {name}: {len(items)} recorded in {time.time() - begin:.0f} s",
        file=sys.stderr,
        flush=True,
    )
    return items


def is_visible(found, golden):
    """Return whether a change of the optimizer is above float32's tolerance in the last loss that was recorded."""
    a, b = (np.frombuffer(item["losses"][-1], np.float32)[0] for item in (found, golden))
    return abs(a - b) > 1e-5 * abs(b)


def judged(bench, name, number, change, found, modes):
    """Return a row for each mode, and print those that are wrong."""
    kind = change[1].kind if is_edit(change) else change.kind
    harmless = change[1].harmless if is_edit(change) else change.harmless
    rows, golden = [], bench.golden[name]
    for mode in modes:
        try:
            well, comparison = bench.judge(name, number, change, found, mode)
        except Exception as error:
            print(
                f"{name} m{number} {label(change)}: {mode}: {type(error).__name__}: {error}",
                flush=True,
            )
            rows.append((kind, harmless, mode, False))
            continue
        if not harmless and not (
            found["effect"] if kind not in LATE else is_visible(found, golden)
        ):
            continue  # the training is the same, as far as it was recorded
        if kind == "lines exchanged" and found["effect"]:
            continue  # the lines share a state, such as that of BatchNorm: their order matters
        rows.append((kind, harmless, mode, well))
        if not well:
            first = comparison.first
            file = Path(first.file or "").name if first else ""
            said = (
                f"{first.kind}: {first.name} {first.place} [{first.cell}] {file}:{first.line} step {first.step}"
                if first
                else f"nothing, status {comparison.status}"
            )
            truth = found.get("truth") or (
                f"{change[1].owner}.{change[1].attribute}" if is_edit(change) else ""
            )
            print(f"{name} m{number} {label(change)} [{truth}] {mode}: {said}", flush=True)
    return rows


def report(rows):
    """Print the tables; return the exit status."""
    table = defaultdict(lambda: [0, 0])
    for kind, harmless, mode, well in rows:
        table[harmless, kind, mode][0] += well
        table[harmless, kind, mode][1] += 1
    modes = list(dict.fromkeys(mode for *_, mode, _ in rows))
    print("| class | " + " | ".join(modes) + " |\n|---|" + "---|" * len(modes))
    status = 0
    for harmless in (False, True):
        kinds = sorted({kind for flag, kind, _ in table if flag == harmless})
        for kind in kinds:
            counts = [table[harmless, kind, mode] for mode in modes]
            print(
                f"| {kind}{' (harmless)' if harmless else ''} | "
                + " | ".join(f"{a} of {b}" for a, b in counts)
                + " |"
            )
        for mode in modes:
            well = sum(table[harmless, kind, mode][0] for kind in kinds)
            count = sum(table[harmless, kind, mode][1] for kind in kinds)
            word = "harmless changes not blamed" if harmless else "faults named first"
            print(
                f"{mode}: {well} of {count} {word}{f' ({100 * well / count:.1f} %)' if count else ''}"
            )
            status |= well < (count if harmless else 0.97 * count)
    return status


if __name__ == "__main__":
    print(json.dumps({"seed": sys.argv[1:]}), file=sys.stderr)
    raise SystemExit(main())

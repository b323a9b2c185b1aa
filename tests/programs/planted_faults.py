# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Plants 100 faults, one at a time, in a copy of the repository, and runs the tests until one fails.

    python -m tests.programs.planted_faults [--all | --room] [--only TEXT] [--minutes 4] [--results FILE]

It runs the tests of `make test` (with ``--all`` those of `make test-all`, with ``--room`` those of the module's room):
for each fault the quick ones of its room, then for each that is left the slow ones, and so on. A test that fails must
pass without the fault.
Each result is kept in a file, so a run that is stopped goes on where it was.
Exit status 0: at least 95 are found (with ``--all``: every one).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.support.paths import ROOT

QUICK = "not slow and not medium and not thorough"
SLOW = "(slow or medium) and not thorough"
THOROUGH = "thorough or whole"
#: so many of them `make test` may miss
MISSED = 5


class Fault(NamedTuple):
    """One fault.

    Attributes:
        module: the module below ``probe``.
        text: the text that is changed; the module has it once.
        fault: the text with the fault in it.
        room: the first tests to run, below ``tests``.
    """

    module: str
    text: str
    fault: str
    room: str

    @property
    def name(self) -> str:
        """The name of the fault, by which its result is kept."""
        return f"{self.module}: {self.text}"


#: (module, text, the text with a fault in it, the first tests to run)
FAULTS = tuple(
    Fault(*row)
    for row in (
        ("callbacks.py", "counter is not None)", "counter is None)", "test_callbacks.py"),
        (
            "capture/autograd/call_graph.py",
            "if key in inputs.keys:",
            "if key not in inputs.keys:",
            "capture",
        ),
        ("capture/autograd/parameter_hooks.py", "== LEAF", "!= LEAF", "tasks/test_debug.py"),
        (
            "capture/autograd/gradient_hooks.py",
            "node._sequence_nr() != LEAF and",
            "node._sequence_nr() == LEAF and",
            "capture",
        ),
        (
            "capture/autograd/parameter_hooks.py",
            'if getattr(parameter, "requires_grad", False):',
            'if not getattr(parameter, "requires_grad", False):',
            "capture",
        ),
        (
            "recording/step_recorder.py",
            "call.entry(parts, backward, call.stack,",
            "call.entry(parts, backward, -1,",
            "capture/graph/test_own_loop.py",
        ),
        (
            "capture/kernel/configuration.py",
            "least <= value",
            "least < value",
            "capture/kernel/test_configuration.py",
        ),
        (
            "capture/patches.py",
            "functools.update_wrapper(",
            "(lambda new, old: new)(",
            "monitor/test_monitor.py",
        ),
        ("capture/pynative/cells.py", "if path not in roots\n", "if path in roots\n", "capture"),
        (
            "capture/pynative/comm_handles.py",
            "if isinstance(item, self._handle)}",
            "if not isinstance(item, self._handle)}",
            "capture/test_comm_handles.py",
        ),
        (
            "capture/pynative/pynative_capture.py",
            "if self._count == self._first:",
            "if self._count == self._first + 1:",
            "capture/test_token_range.py",
        ),
        ("capture/support_ops.py", "not in seen:", "in seen:", "capture"),
        ("config/json_reader.py", 'before.count("\\n") + 1', 'before.count("\\n")', "config"),
        ("config/messages.py", "spellings, 1, 0.5)", "spellings, 1, 1.0)", "config"),
        (
            "config/validators.py",
            "not isinstance(value, bool) and abs",
            "isinstance(value, bool) and abs",
            "config",
        ),
        ("doctor/calls.py", 'added["waits"] + device.get("waits", 0)', 'added["waits"]', "doctor"),
        ("doctor/memory.py", "math.inf if max(ends) >", "math.inf if min(ends) >", "doctor"),
        (
            "doctor/environment.py",
            "any(list(entries) == [_OTHERS] for entries",
            "any(bool(entries) for entries",
            "doctor",
        ),
        ("entry.py", "parts=parts, stack=-1", "parts=parts, stack=0", "recording"),
        (
            "findings/sentence.py",
            '("LC_ALL", "LC_MESSAGES", "LANG")',
            '("LANG", "LC_MESSAGES", "LC_ALL")',
            "findings",
        ),
        (
            "launch/models.py",
            "(len(pair[1] & left), -len(pair[1]), _count",
            "(len(pair[1] & left), len(pair[1]), _count",
            "launch",
        ),
        (
            "launch/program.py",
            "waiting += other.__cause__, other.__context__",
            "waiting.append(other.__cause__)",
            "launch",
        ),
        (
            "launch/models.py",
            "self._expected & alive or alive",
            "self._expected or alive",
            "launch",
        ),
        (
            "launch/watch.py",
            "self.is_open = self.is_due = self._has_called = False",
            "self.is_open = self.is_due = False",
            "launch",
        ),
        ("launch/watch.py", "arguments[0], wanted=False)", "arguments[0])", "launch"),
        (
            "measure/host.py",
            "len(numbers) > len(FOUR)",
            "len(numbers) >= len(FOUR)",
            "measure/test_array_filter.py",
        ),
        (
            "measure/describe.py",
            "value.bit_length() > _MAX_BITS",
            "value.bit_length() < _MAX_BITS",
            "measure",
        ),
        ("measure/measurer.py", "if may_read else True", "if may_read else False", "measure"),
        ("measure/statistics.py", "bool(array.all())", "bool(array.any())", "measure"),
        (
            "measure/tensor_reader.py",
            "array.dtype.kind == _FOREIGN_KIND",
            "array.dtype.kind != _FOREIGN_KIND",
            "measure",
        ),
        (
            "monitor/monitor_recording.py",
            "self._count < own.max_alarms",
            "self._count <= own.max_alarms",
            "monitor",
        ),
        (
            "series/looks.py",
            "and abs(value) > mean * (1 + limit)",
            "and value > mean * (1 + limit)",
            "monitor",
        ),
        ("monitor/msprobe/cell_rows.py", "% self._accumulated", "// self._accumulated", "monitor"),
        ("monitor/msprobe/values.py", "not targets or any(", "not targets or all(", "monitor"),
        (
            "monitor/alarms.py",
            "del self._waiting[min(self._waiting)]",
            "del self._waiting[max(self._waiting)]",
            "monitor",
        ),
        ("monitor/numbers.py", "if 1e-30 < square < math.inf:", "if square < math.inf:", "monitor"),
        (
            "monitor/numbers.py",
            "or abs(norm - arrived) <= _SAME * min(",
            "or not abs(norm - arrived) > _SAME * min(",
            "monitor",
        ),
        (
            "capture/training/events.py",
            "several = isinstance(weights, (tuple, list))",
            "several = isinstance(weights, tuple)",
            "monitor",
        ),
        ("naming.py", 'return "_" + text if', "return text if", "architecture/test_docstrings.py"),
        ("process/rank.py", "sibling_count() > 1", "sibling_count() > 2", "process/test_rank.py"),
        (
            "process/signals.py",
            "if signal.getsignal(signal.SIGTERM) == ",
            "if signal.getsignal(signal.SIGTERM) != ",
            "process/test_signals.py",
        ),
        ("pytree.py", "[(str(place), item)", "[(str(place + 1), item)", "test_pytree.py"),
        (
            "reading/check/batches.py",
            "shifts.add(places[key] - step)",
            "shifts.add(step - places[key])",
            "reading/check",
        ),
        (
            "reading/check/names.py",
            '("content", "shape")',
            '("shape", "content")',
            "reading/check",
        ),
        (
            "reading/check/parameters.py",
            "len(names) >= len(changeable)",
            "len(names) > len(changeable)",
            "reading/check",
        ),
        (
            "reading/check/weights/distance.py",
            "narrow = min(dtypes",
            "narrow = max(dtypes",
            "reading/check",
        ),
        (
            "reading/check/weights/distance.py",
            "(np.abs(left) ** 2)",
            "(np.abs(right) ** 2)",
            "reading/check",
        ),
        (
            "reading/check/weights/weight.py",
            "left -= len(data) - len(rest)",
            "left -= len(data)",
            "reading/check",
        ),
        (
            "reading/compare/answer/export.py",
            "else right - left for left, right in pairs",
            "else left - right for left, right in pairs",
            "reading/compare/answer",
        ),
        (
            "reading/compare/answer/summary.py",
            "least = min(",
            "least = max(",
            "reading/compare/answer",
        ),
        (
            "reading/compare/dataflow/nodes.py",
            "and not outputs_a & outputs_b",
            "and outputs_a != outputs_b",
            "reading/compare/dataflow",
        ),
        (
            "reading/compare/distances/tolerances.py",
            "else max(tolerance, own)",
            "else min(tolerance, own)",
            "reading/compare/distances",
        ),
        (
            "reading/compare/judging/foreign.py",
            "found.exact or bool(",
            "found.exact and bool(",
            "reading/compare/frameworks",
        ),
        (
            "reading/compare/judging/exact.py",
            "most = max(most, float(gap.max(initial=0.0)))",
            "most = float(gap.max(initial=0.0))",
            "reading/compare/judging",
        ),
        (
            "reading/compare/judging/judge.py",
            "of_dtype(dtype_b), min(floor))",
            "of_dtype(dtype_b), max(floor))",
            "reading/compare/judging",
        ),
        (
            "reading/compare/judging/divided_batches.py",
            '"B" if rows_a > rows_b',
            '"B" if rows_a < rows_b',
            "reading/compare/judging",
        ),
        (
            "reading/compare/judging/parts.py",
            "range(2, min(lengths) + 1)",
            "range(2, min(lengths))",
            "reading/compare/judging",
        ),
        (
            "reading/compare/judging/updates.py",
            "gap / (max(abs(left), abs(right)) or 1.0)",
            "gap",
            "reading/compare/judging",
        ),
        (
            "reading/compare/layouts/renaming.py",
            "max(most.get(key, 0), parts.number + 1)",
            "max(most.get(key, 0), parts.number)",
            "reading/compare/layouts",
        ),
        (
            "reading/compare/origins/across_ranks.py",
            "is_quiet = (is_quiet or not before) and all(",
            "is_quiet = all(",
            "reading/compare/origins",
        ),
        (
            "reading/compare/origins/finder.py",
            "if number < len(names) else None",
            "if number + 1 < len(names) else None",
            "reading/compare/origins",
        ),
        (
            "reading/compare/origins/gradient_end.py",
            "if len(leaves) != 1:",
            "if not leaves:",
            "reading/compare/origins",
        ),
        (
            "reading/compare/pairing/alignment.py",
            "if way == keys.BY_PLACE and len(left_a) != len(left_b):",
            "if way == keys.BY_PLACE and len(left_a) == len(left_b):",
            "reading/compare/pairing",
        ),
        (
            "reading/compare/pairing/between.py",
            "end is not None and end >= begin:",
            "end is not None and end > begin:",
            "reading/compare/pairing",
        ),
        (
            "reading/compare/pairing/crossed.py",
            "if len(own) < 2 or",
            "if len(own) < 3 or",
            "reading/compare/pairing",
        ),
        (
            "reading/compare/pairing/operands.py",
            "straight <= _NEAR:",
            "straight >= _NEAR:",
            "reading/compare/pairing",
        ),
        (
            "reading/compare/pairing/reductions.py",
            "[names.index(name) for name in wanted]",
            "[wanted.index(name) for name in names]",
            "reading/compare/pairing",
        ),
        (
            "reading/compare/pairing/sequence.py",
            "for skip in range(apart + 1):",
            "for skip in range(apart):",
            "reading/compare/pairing",
        ),
        (
            "reading/compare/pairing/updates.py",
            "is_one = _is_one(own_a) and _is_one(own_b)",
            "is_one = _is_one(own_a) or _is_one(own_b)",
            "reading/compare/pairing",
        ),
        (
            "reading/dumps/entry_name.py",
            "if last in (FORWARD, BACKWARD):",
            "if last in (FORWARD,):",
            "reading",
        ),
        (
            "reading/dumps/kernels/step.py",
            "len(path)), reverse=True)",
            "len(path)))",
            "reading/dumps/kernels",
        ),
        (
            "reading/dumps/kernels/step.py",
            "for slot in range(max(found) + 1)]",
            "for slot in range(len(found))]",
            "reading/dumps/kernels",
        ),
        (
            "reading/dumps/query.py",
            "int(match[2] or match[1]) + 1)",
            "int(match[2] or match[1]))",
            "reading",
        ),
        (
            "reading/one_run/nan.py",
            "if origin.kind != RECEIVED]",
            "if origin.kind == RECEIVED]",
            "reading/one_run/test_findings.py",
        ),
        (
            "reading/one_run/rank_checks.py",
            "elif of_step:",
            "elif len(of_step) > 2:",
            "reading/one_run/test_findings.py",
        ),
        (
            "reading/report/columns.py",
            "[MISSING_DOUBLE if value == MISSING_SINGLE else value for value in numbers]",
            "[value for value in numbers]",
            "reading/report",
        ),
        (
            "reading/report/content.py",
            "where = {place: first_call + at",
            "where = {place: first_call + place",
            "reading/report",
        ),
        (
            "reading/report/columns.py",
            "return base.typecode == column.typecode and",
            "return",
            "reading/report",
        ),
        (
            "reading/report/reading.py",
            "_GROWN * max(max(given, default=0.0), _FLOOR)",
            "_GROWN * max(given, default=0.0)",
            "reading/report",
        ),
        (
            "reading/report/reading.py",
            "max(abs(real(record.get(key)) or 0.0) for",
            "max((real(record.get(key)) or 0.0) for",
            "reading/report",
        ),
        (
            "recording/call_stacks.py",
            "id(frame.f_code), frame.f_lasti",
            "id(frame.f_code), 0",
            "capture/test_stacks.py",
        ),
        (
            "recording/step_recorder.py",
            "if name == self._first:",
            "if name != self._first:",
            "recording",
        ),
        (
            "replaying/calling.py",
            "self.leaves_input = not np.array_equal",
            "self.leaves_input = np.array_equal",
            "replaying",
        ),
        (
            "replaying/describing.py",
            "(len(inputs), len(inputs) + len(named))",
            "(len(inputs),)",
            "replaying",
        ),
        (
            "replaying/evaluating.py",
            "is_whole = recorded.size >= largest",
            "is_whole = recorded.size > largest",
            "replaying",
        ),
        (
            "replaying/judging.py",
            "(recorded != here) & (recorded != outcome.golden)",
            "(recorded != here) | (recorded != outcome.golden)",
            "replaying",
        ),
        (
            "replaying/making.py",
            'if leaf and (item is None or list(item[0].shape) != leaf["shape"]):',
            "if leaf and item is None:",
            "replaying",
        ),
        (
            "replaying/references.py",
            "[total // 2, total - total // 2]",
            "[total - total // 2, total // 2]",
            "replaying",
        ),
        ("seeding.py", "not 0 <= seed", "not 0 < seed", "test_seeding.py"),
        ("series/file.py", "self._place += end - len(head)", "self._place += end", "series"),
        (
            "series/dump_rules.py",
            "and step not in series)",
            "and step in series)",
            "reading/one_run/test_findings.py",
        ),
        ("session/session.py", "value >= 0", "value > 0", "session"),
        (
            "session/recording.py",
            "if self.said or settings.quiet",
            "if self.said or not settings.quiet",
            "session",
        ),
        ("snapshot/snapshot.py", "dtype=_WORDS[max(width, 4)]", "dtype=_WORDS[width]", "snapshot"),
        (
            "snapshot/snapshot.py",
            ".splitlines()[-1].split()[1]",
            ".splitlines()[-1].split()[0]",
            "snapshot",
        ),
        (
            "store/arrays.py",
            "count > self.found - self._kept:",
            "count > self.found + self._kept:",
            "store",
        ),
        ("store/arrays.py", "copy == content.data\n", "copy != content.data\n", "store"),
        ("store/journal.py", "== len(data):", "!= len(data):", "store"),
        ("store/run_folders.py", "if number == 1 else", "if number == 2 else", "store"),
        (
            "tasks/nan_check.py",
            "hits + 1 == settings.max_hits",
            "hits == settings.max_hits",
            "tasks",
        ),
    )
)


def plant(copy, fault):
    """Write a module with its fault; return a function that takes it out again."""
    path = copy / "probe" / fault.module
    good = path.read_text("utf-8")
    if good.count(fault.text) < 1:
        raise SystemExit(
            f"{fault.module} has no text {fault.text!r}: the table of faults is out of date"
        )
    path.write_text(good.replace(fault.text, fault.fault, 1), "utf-8")
    return lambda: path.write_text(good, "utf-8")


def failing_test(copy, *arguments):
    """Return the first test that fails, or nothing."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        *arguments,
    ]
    command += [
        "--deselect",
        "tests/test_contributing.py::test_a_planted_fault_has_its_place_in_the_code",
    ]
    here = {**os.environ, "PYTHONPATH": str(copy)}  # programs in other folders import the copy too
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=here,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=1800,
        )
    except subprocess.TimeoutExpired:
        return "hangs"
    found = re.search(r"^(?:FAILED|ERROR) (\S+?::.+?|\S+)(?: - .*)?$", done.stdout, re.MULTILINE)
    if found:
        return found[1]
    return f"exit status {done.returncode}" if done.returncode not in (0, 5) else ""


#: the parts of the tests, the nearest first; the last is that of `make test-all` alone
PARTS = ("its room, quick", "its room, slow", "all others, quick", "all others, slow", "thorough")


def runs(room, part):
    """Yield (tests, marker) of the runs of one part for a fault whose tests lie in a room."""
    own = f"tests/{room}"
    marker = {"quick": QUICK, "slow": SLOW}.get(part.split()[-1], THOROUGH)
    if part == "all others, quick":
        yield ["tests", f"--ignore={own}"], marker
    elif part.startswith("its room"):
        yield [own], marker
    else:
        for path in sorted((ROOT / "tests").iterdir()):
            if path.name not in ("conformance", "programs", "support") and (
                path.is_dir() or path.match("test_*.py")
            ):
                yield (
                    [f"tests/{path.name}", *([f"--ignore={own}"] if marker == SLOW else [])],
                    marker,
                )


class Bench:
    """Copies of the repository, and the results so far.

    Args:
        folder: where the copies lie.
        results: path of the file with results: name of a fault -> {"found": test, "passed": runs without a failure}.
        until: the time after which no further run starts.
    """

    def __init__(self, folder, results, until):
        self._folder, self._path, self._until = folder, results, until
        self.results = json.loads(results.read_text()) if results.exists() else {}
        self._copies = []

    def copy(self, number):
        """Make a copy of what git knows here."""
        copy = self._folder / str(number)
        names = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for name in names.splitlines():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
        self._copies.append(copy)

    def judge(self, fault, part):
        """Run the tests of one part until one fails because of this fault."""
        result = self.results.setdefault(fault.name, {"found": "", "passed": []})
        copy = self._copies.pop()
        for places, marker in runs(fault.room, part):
            name = " ".join([*places, "-m", marker])
            if result["found"] or time.time() > self._until:
                break
            if name in result["passed"]:
                continue
            result["found"] = self._found(copy, fault, [*places, "-m", marker])
            result["passed"] += [] if result["found"] else [name]
            self._path.write_text(json.dumps(self.results, indent=1))
            if result["found"]:
                print(f"{fault.module:40} {result['found']}", flush=True)
        self._copies.append(copy)

    def is_open(self, fault, parts):
        """Return whether tests of these parts are left to run for a fault."""
        result = self.results.get(fault.name, {"found": "", "passed": []})
        wanted = (
            " ".join([*places, "-m", marker])
            for part in parts
            for places, marker in runs(fault.room, part)
        )
        return not result["found"] and any(name not in result["passed"] for name in wanted)

    def _found(self, copy, fault, arguments):
        """Return the first test that fails with the fault and passes without it."""
        while True:
            take_out = plant(copy, fault)
            try:
                found = failing_test(copy, *arguments)
            finally:
                take_out()
            if "::" not in found or not failing_test(copy, found):
                return found
            arguments = [*arguments, f"--deselect={found}"]


def main():
    """Print a line for each fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--all", action="store_true", help="those that `make test` misses may be found by test-all"
    )
    parser.add_argument("--room", action="store_true", help="only the tests of each module's room")
    parser.add_argument("--only", default="", help="only modules with this text in their name")
    parser.add_argument(
        "--minutes", type=float, default=600, help="start no run of tests after so many minutes"
    )
    parser.add_argument(
        "--results", type=Path, default=ROOT / ".planted_faults.json", help="what is known already"
    )
    parser.add_argument("--workers", type=int, choices=[1, 2], default=2, help="faults at a time")
    given = parser.parse_args()
    chosen = [fault for fault in FAULTS if given.only in fault.module]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), given.results, time.time() + 60 * given.minutes)
        for number in range(given.workers):
            bench.copy(number)
        parts = PARTS[:2] if given.room else PARTS if given.all else PARTS[:-1]
        for part in parts:
            left = [fault for fault in chosen if bench.is_open(fault, [part])]
            with ThreadPoolExecutor(given.workers) as pool:
                list(pool.map(bench.judge, left, [part] * len(left)))
    open_ones = sum(bench.is_open(fault, parts) for fault in chosen)
    missed = (
        [fault.name for fault in chosen if not bench.results[fault.name]["found"]]
        if not open_ones
        else []
    )
    known = sum(bool(bench.results.get(fault.name, {}).get("found")) for fault in chosen)
    print(f"{known} of {len(chosen)} found, {open_ones} not judged yet: {given.results}")
    for name in missed:
        print(f"NOT FOUND: {name}")
    return int(bool(open_ones) or len(missed) > (0 if given.all else MISSED))


if __name__ == "__main__":
    raise SystemExit(main())

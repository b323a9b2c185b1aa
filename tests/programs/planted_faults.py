# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Plants one fault in each of 40 modules of a copy of the repository, and runs the tests until one fails.

    python -m tests.programs.planted_faults [--all] [--only TEXT] [--minutes 4] [--results FILE]

It runs the tests of `make test` (with ``--all`` those of `make test-all`): for each fault the quick ones of the
module's room, then for each that is left the slow ones, and so on. A test that fails must pass without the fault.
Each result is kept in a file, so a run that is stopped goes on where it was.
Exit status 0: at least 38 are found (with ``--all``: every one).
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

from tests.support.paths import ROOT

QUICK = "not slow and not medium and not thorough"
SLOW = "(slow or medium) and not thorough"
THOROUGH = "thorough or whole"

#: module -> (text, the text with a fault in it, the first tests to run)
FAULTS = {
    "session/arguments.py": ("value >= 0", "value > 0", "test_debugger.py"),
    "callbacks.py": ("counter is not None)", "counter is None)", "test_callbacks.py"),
    "capture/autograd/call_graph.py": ("if key in inputs.keys:", "if key not in inputs.keys:", "capture"),
    "capture/autograd/gradient_hooks.py": ("node._sequence_nr() == LEAF", "node._sequence_nr() != LEAF", "capture"),
    "capture/autograd/parameter_hooks.py": ('if getattr(parameter, "requires_grad", False):',
                                            'if not getattr(parameter, "requires_grad", False):', "capture"),
    "capture/autograd/debug_values.py": ("== LEAF", "!= LEAF", "tasks/test_debug.py"),
    "capture/graph/calls.py": ("and not backward:", "and backward:", "capture/graph/test_own_loop.py"),
    "capture/kernel/keys.py": ("least <= value", "least < value", "capture/kernel/test_configuration.py"),
    "capture/patches.py": ("functools.update_wrapper(", "(lambda new, old: new)(", "monitor/test_monitor.py"),
    "capture/pynative/cells.py": ("if path not in roots]", "if path in roots]", "capture"),
    "capture/pynative/comm_handles.py": ("if isinstance(item, self._handle)}", "if not isinstance(item, self._handle)}",
                                         "capture/test_comm_handles.py"),
    "capture/pynative/token_range.py": ("if self._count == self._first:", "if self._count == self._first + 1:",
                                        "capture/test_token_range.py"),
    "capture/support_ops.py": ("not in seen:", "in seen:", "capture"),
    "config/json_reader.py": ('before.count("\\n") + 1', 'before.count("\\n")', "config"),
    "config/messages.py": ("spellings, 1, 0.5)", "spellings, 1, 1.0)", "config"),
    "config/validators.py": ("not isinstance(value, bool) and abs", "isinstance(value, bool) and abs", "config"),
    "entry.py": ("parts=parts, stack=-1", "parts=parts, stack=0", "recording"),
    "measure/host.py": ("len(numbers) > len(FOUR)", "len(numbers) >= len(FOUR)",
                        "measure/test_array_filter.py"),
    "measure/describe.py": ("value.bit_length() > _MAX_BITS", "value.bit_length() < _MAX_BITS", "measure"),
    "measure/gradient_sum.py": ("if may_read else True", "if may_read else False", "measure"),
    "measure/statistics.py": ("bool(array.all())", "bool(array.any())", "measure"),
    "measure/tensor_reader.py": ("array.dtype.itemsize == 2:", "array.dtype.itemsize == 4:", "measure"),
    "naming.py": ('return "_" + text if', 'return text if', "architecture/test_docstrings.py"),
    "process/rank.py": ("sibling_count() > 1", "sibling_count() > 2", "process/test_rank.py"),
    "process/signals.py": ("== self._on_signal:", "!= self._on_signal:", "process/test_signals.py"),
    "pytree.py": ('[(str(place), item)', '[(str(place + 1), item)', "test_pytree.py"),
    "recording/call_stacks.py": ("id(frame.f_code), frame.f_lasti", "id(frame.f_code), 0", "capture/test_stacks.py"),
    "recording/name_filter.py": ("if name == self._first:", "if name != self._first:", "recording"),
    "session/run_report.py": ("if self.said or settings.quiet", "if self.said or not settings.quiet",
                              "test_run_report.py"),
    "seeding.py": ("not 0 <= seed", "not 0 < seed", "test_seeding.py"),
    "store/disk_budget.py": ("count > self.found - self._kept:", "count > self.found + self._kept:", "store"),
    "store/equal_arrays.py": ("if not _is_equal(", "if _is_equal(", "store"),
    "store/journal.py": ("== len(data):", "!= len(data):", "store"),
    "store/run_folders.py": ("if number == 1 else", "if number == 2 else", "store"),
    "tasks/nan_check.py": ("hits + 1 == settings.max_hits", "hits == settings.max_hits", "tasks"),
    "reading/dumps/entry_name.py": ("if last in (FORWARD, BACKWARD):", "if last in (FORWARD,):", "reading"),
    "reading/one_run/nan.py": ("if origin.kind != RECEIVED]", "if origin.kind == RECEIVED]",
                               "reading/one_run/test_findings.py"),
    "reading/dumps/query.py": ("int(match[2] or match[1]) + 1)", "int(match[2] or match[1]))", "reading"),
    "reading/one_run/rank_checks.py": ("len(of_step) > 1:", "len(of_step) > 2:", "reading/one_run/test_findings.py"),
    "series/rules.py": ("step not in series)", "step in series)", "reading/one_run/test_findings.py"),
}  # fmt: skip


def plant(copy, module):
    """Write a module with its fault; return a function that takes it out again."""
    path = copy / "probe" / module
    good = path.read_text("utf-8")
    text, fault, _ = FAULTS[module]
    if good.count(text) < 1:
        raise SystemExit(f"{module} has no text {text!r}: the table of faults is out of date")
    path.write_text(good.replace(text, fault, 1), "utf-8")
    return lambda: path.write_text(good, "utf-8")


def failing_test(copy, *arguments):
    """Return the first test that fails, or nothing."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]
    command += ["--deselect", "tests/test_contributing.py::test_a_planted_fault_has_its_place_in_the_code"]
    here = {**os.environ, "PYTHONPATH": str(copy)}  # programs in other folders import the copy too
    try:
        done = subprocess.run(
            command, cwd=copy, env=here, capture_output=True, text=True, errors="replace", check=False, timeout=1800
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
            if path.name not in ("conformance", "programs", "support") and (path.is_dir() or path.match("test_*.py")):
                yield [f"tests/{path.name}", *([f"--ignore={own}"] if marker == SLOW else [])], marker


class Bench:
    """Copies of the repository, and the results so far.

    Args:
        folder: where the copies lie.
        results: path of the file with results: module -> {"found": test, "passed": runs without a failure}.
        until: the time after which no further run starts.
    """

    def __init__(self, folder, results, until):
        self._folder, self._path, self._until = folder, results, until
        self.results = json.loads(results.read_text()) if results.exists() else {}
        self._copies = []

    def copy(self, number):
        """Make a copy of what git knows here."""
        copy = self._folder / str(number)
        names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in names.splitlines():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
        self._copies.append(copy)

    def judge(self, module, part):
        """Run the tests of one part until one fails because of this module's fault."""
        result = self.results.setdefault(module, {"found": "", "passed": []})
        copy = self._copies.pop()
        for places, marker in runs(FAULTS[module][2], part):
            name = " ".join([*places, "-m", marker])
            if result["found"] or time.time() > self._until:
                break
            if name in result["passed"]:
                continue
            result["found"] = self._found(copy, module, [*places, "-m", marker])
            result["passed"] += [] if result["found"] else [name]
            self._path.write_text(json.dumps(self.results, indent=1))
            if result["found"]:
                print(f"{module:40} {result['found']}", flush=True)
        self._copies.append(copy)

    def is_open(self, module, parts):
        """Return whether tests of these parts are left to run for a module's fault."""
        result = self.results.get(module, {"found": "", "passed": []})
        wanted = (
            " ".join([*places, "-m", marker]) for part in parts for places, marker in runs(FAULTS[module][2], part)
        )
        return not result["found"] and any(name not in result["passed"] for name in wanted)

    def _found(self, copy, module, arguments):
        """Return the first test that fails with the fault and passes without it."""
        while True:
            take_out = plant(copy, module)
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
    parser.add_argument("--all", action="store_true", help="those that `make test` misses may be found by test-all")
    parser.add_argument("--only", default="", help="only modules with this text in their name")
    parser.add_argument("--minutes", type=float, default=600, help="start no run of tests after so many minutes")
    parser.add_argument("--results", type=Path, default=ROOT / ".planted_faults.json", help="what is known already")
    parser.add_argument("--workers", type=int, choices=[1, 2], default=2, help="faults at a time")
    given = parser.parse_args()
    chosen = [module for module in FAULTS if given.only in module]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), given.results, time.time() + 60 * given.minutes)
        for number in range(given.workers):
            bench.copy(number)
        parts = PARTS if given.all else PARTS[:-1]
        for part in parts:
            left = [module for module in chosen if bench.is_open(module, [part])]
            with ThreadPoolExecutor(given.workers) as pool:
                list(pool.map(bench.judge, left, [part] * len(left)))
    open_ones = sum(bench.is_open(module, parts) for module in chosen)
    missed = [module for module in chosen if not bench.results[module]["found"]] if not open_ones else []
    known = sum(bool(bench.results.get(module, {}).get("found")) for module in chosen)
    print(f"{known} of {len(chosen)} found, {open_ones} not judged yet: {given.results}")
    for module in missed:
        print(f"{module:40} NOT FOUND")
    return int(bool(open_ones) or len(missed) > (0 if given.all else 2))


if __name__ == "__main__":
    raise SystemExit(main())

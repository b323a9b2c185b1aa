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
from tests.support.planting import module_path, replaced

QUICK = "not slow and not medium and not thorough"
SLOW = "(slow or medium) and not thorough"
THOROUGH = "thorough or whole"
#: so many of them `make test` may miss
MISSED = 5


class Fault(NamedTuple):
    """One fault.

    Attributes:
        place: a function of the code, as tests/support/planting.py names it.
        code: the expression or statement that is changed; the function has it once.
        fault: the code with the fault in it.
        room: the first tests to run, below ``tests``.
    """

    place: str
    code: str
    fault: str
    room: str

    @property
    def name(self) -> str:
        """The name of the fault, by which its result is kept."""
        return f"{self.place}: {self.code}"


#: (place, code, the code with a fault in it, the first tests to run)
FAULTS = tuple(
    Fault(*row)
    for row in (
        (
            "callbacks:MsprobeInitStep.on_train_begin",
            "counter is not None",
            "counter is None",
            "test_callbacks.py",
        ),
        (
            "capture.autograd.call_graph:CallGraph.__init__",
            "key in inputs.keys",
            "key not in inputs.keys",
            "capture",
        ),
        (
            "capture.autograd.parameter_hooks:DebugValueHooks._watch",
            "node._sequence_nr() == LEAF",
            "node._sequence_nr() != LEAF",
            "tasks/test_debug.py",
        ),
        (
            "capture.autograd.gradient_hooks:GradientHooks.attach",
            "node._sequence_nr() != LEAF",
            "node._sequence_nr() == LEAF",
            "capture",
        ),
        (
            "capture.autograd.parameter_hooks:ParameterHooks._new_hooks",
            "getattr(parameter, 'requires_grad', False)",
            "not getattr(parameter, 'requires_grad', False)",
            "capture",
        ),
        (
            "recording.step_recorder:StepRecorder.draft",
            "call.entry(parts, backward, call.stack, self._new_parents(call, backward))",
            "call.entry(parts, backward, -1, self._new_parents(call, backward))",
            "capture/graph/test_own_loop.py",
        ),
        (
            "capture.kernel.configuration:_whole",
            "least <= value <= LAST_STEP",
            "least < value <= LAST_STEP",
            "capture/kernel/test_configuration.py",
        ),
        (
            "capture.patches:around.wrap",
            "functools.update_wrapper(stand_in, original)",
            "(lambda new, old: new)(stand_in, original)",
            "monitor/test_monitor.py",
        ),
        ("capture.pynative.cells:named_cells", "path not in roots", "path in roots", "capture"),
        (
            "capture.pynative.comm_handles:CommHandleTracker.find",
            "isinstance(item, self._handle)",
            "not isinstance(item, self._handle)",
            "capture/test_comm_handles.py",
        ),
        (
            "capture.pynative.pynative_capture:TokenRange._counted",
            "self._count == self._first",
            "self._count == self._first + 1",
            "capture/test_token_range.py",
        ),
        (
            "capture.support_ops:_resolve",
            "(id(owner), name) not in seen",
            "(id(owner), name) in seen",
            "capture",
        ),
        ("config.json_reader:mistake", "before.count('\\n') + 1", "before.count('\\n')", "config"),
        (
            "config.messages:nearest",
            "difflib.get_close_matches(word, spellings, 1, 0.5)",
            "difflib.get_close_matches(word, spellings, 1, 1.0)",
            "config",
        ),
        (
            "config.validators:_is_whole",
            "isinstance(value, Integral) and (not isinstance(value, bool)) and (abs(int(value)) < _BEYOND)",
            "isinstance(value, Integral) and isinstance(value, bool) and (abs(int(value)) < _BEYOND)",
            "config",
        ),
        (
            "doctor.calls:_judge",
            "added['waits'] + device.get('waits', 0)",
            "added['waits']",
            "doctor",
        ),
        ("doctor.memory:_error", "max(ends)", "min(ends)", "doctor"),
        ("doctor.environment:_judge", "list(entries) == [_OTHERS]", "bool(entries)", "doctor"),
        (
            "entry:Entry.further",
            "self._replace(parts=parts, stack=-1, parents=())",
            "self._replace(parts=parts, stack=0, parents=())",
            "recording",
        ),
        (
            "findings.sentence:locale_language",
            "('LC_ALL', 'LC_MESSAGES', 'LANG')",
            "('LANG', 'LC_MESSAGES', 'LC_ALL')",
            "findings",
        ),
        (
            "launch.models:ModelFinder.with_partners",
            "(len(pair[1] & left), -len(pair[1]), _count(pair[0]))",
            "(len(pair[1] & left), len(pair[1]), _count(pair[0]))",
            "launch",
        ),
        (
            "launch.program:_show",
            "waiting += (other.__cause__, other.__context__)",
            "waiting.append(other.__cause__)",
            "launch",
        ),
        (
            "launch.models:Rounds._awaited",
            "self._expected & alive or alive",
            "self._expected or alive",
            "launch",
        ),
        (
            "launch.watch:Steps.end",
            "self.is_open = self.is_due = self._has_called = False",
            "self.is_open = self.is_due = False",
            "launch",
        ),
        (
            "launch.watch:Watch.__init__",
            "self._checks_of(lambda arguments, _: arguments[0], wanted=False)",
            "self._checks_of(lambda arguments, _: arguments[0])",
            "launch",
        ),
        (
            "measure.host:ArrayFilter.wants",
            "len(numbers) > len(FOUR)",
            "len(numbers) >= len(FOUR)",
            "measure/test_array_filter.py",
        ),
        (
            "measure.describe:ValueDescriber._number",
            "value.bit_length() > _MAX_BITS",
            "value.bit_length() < _MAX_BITS",
            "measure",
        ),
        (
            "measure.measurer:GradientSum.subtract_from",
            "self.resolve() if may_read else True",
            "self.resolve() if may_read else False",
            "measure",
        ),
        ("measure.statistics:statistics", "array.all()", "array.any()", "measure"),
        (
            "measure.tensor_reader:to_numpy",
            "array.dtype.kind == _FOREIGN_KIND",
            "array.dtype.kind != _FOREIGN_KIND",
            "measure",
        ),
        (
            "monitor.monitor_recording:MonitorRecording._act",
            "self._count < own.max_alarms",
            "self._count <= own.max_alarms",
            "monitor",
        ),
        ("series.looks:is_above", "abs(value)", "value", "monitor"),
        (
            "monitor.msprobe.cell_rows:CellRows.rows",
            "calls.setdefault(slot.call, len(calls)) % self._accumulated",
            "calls.setdefault(slot.call, len(calls)) // self._accumulated",
            "monitor",
        ),
        (
            "monitor.msprobe.values:chosen_parameters",
            "any(name.startswith(tuple(targets)) for name in (path, short, whole))",
            "all(name.startswith(tuple(targets)) for name in (path, short, whole))",
            "monitor",
        ),
        ("monitor.alarms:Neighbour.compare", "min(self._waiting)", "max(self._waiting)", "monitor"),
        (
            "monitor.numbers:HostNumbers.norm",
            "1e-30 < square < math.inf",
            "square < math.inf",
            "monitor",
        ),
        (
            "monitor.numbers:Row.finish",
            "abs(norm - arrived) <= _SAME * min(norm, arrived)",
            "not abs(norm - arrived) > _SAME * min(norm, arrived)",
            "monitor",
        ),
        ("capture.training.events:TrainingHooks._returned", "(tuple, list)", "tuple", "monitor"),
        ("naming:escape_formula", "'_' + text", "text", "architecture/test_docstrings.py"),
        (
            "process.rank:has_siblings",
            "sibling_count() > 1",
            "sibling_count() > 2",
            "process/test_rank.py",
        ),
        (
            "process.signals:SigtermHandler.remove",
            "signal.getsignal(signal.SIGTERM) == self._on_signal",
            "signal.getsignal(signal.SIGTERM) != self._on_signal",
            "process/test_signals.py",
        ),
        ("pytree:items_of", "str(place)", "str(place + 1)", "test_pytree.py"),
        (
            "reading.check.batches:_shift",
            "places[key] - step",
            "step - places[key]",
            "reading/check",
        ),
        (
            "reading.check.names:match_names",
            "('content', 'shape')",
            "('shape', 'content')",
            "reading/check",
        ),
        (
            "reading.check.parameters:ParameterCheck._which",
            "len(names) >= len(changeable)",
            "len(names) > len(changeable)",
            "reading/check",
        ),
        (
            "reading.check.weights.distance:is_rounded",
            "min(dtypes, key=lambda dtype: dtype.itemsize)",
            "max(dtypes, key=lambda dtype: dtype.itemsize)",
            "reading/check",
        ),
        (
            "reading.check.weights.distance:distance",
            "np.abs(left)",
            "np.abs(right)",
            "reading/check",
        ),
        (
            "reading.check.weights.weight:in_file.pieces",
            "len(data) - len(rest)",
            "len(data)",
            "reading/check",
        ),
        (
            "reading.compare.answer.export:_numbers",
            "right - left",
            "left - right",
            "reading/compare/answer",
        ),
        (
            "reading.compare.answer.summary:ComparisonResult.is_comparable",
            "paired + min(alone)",
            "paired + max(alone)",
            "reading/compare/answer",
        ),
        (
            "reading.compare.dataflow.nodes:Nodes.uses_other_output",
            "bool(outputs_a and outputs_b) and (not outputs_a & outputs_b)",
            "bool(outputs_a and outputs_b) and outputs_a != outputs_b",
            "reading/compare/dataflow",
        ),
        (
            "reading.compare.distances.tolerances:Tolerances.agrees",
            "max(tolerance, own)",
            "min(tolerance, own)",
            "reading/compare/distances",
        ),
        (
            "reading.compare.judging.foreign:is_certain",
            "found.exact or bool(rows != columns)",
            "found.exact and bool(rows != columns)",
            "reading/compare/frameworks",
        ),
        (
            "reading.compare.judging.exact:exact_distance",
            "max(most, float(gap.max(initial=0.0)))",
            "float(gap.max(initial=0.0))",
            "reading/compare/judging",
        ),
        (
            "reading.compare.judging.judge:Judge._verdict",
            "min(floor)",
            "max(floor)",
            "reading/compare/judging",
        ),
        (
            "reading.compare.judging.divided_batches:forgive_divided_batches",
            "rows_a > rows_b",
            "rows_a < rows_b",
            "reading/compare/judging",
        ),
        (
            "reading.compare.judging.parts:best_order",
            "min(lengths) + 1",
            "min(lengths)",
            "reading/compare/judging",
        ),
        (
            "reading.compare.judging.updates:_judged",
            "gap / (max(abs(left), abs(right)) or 1.0)",
            "gap",
            "reading/compare/judging",
        ),
        (
            "reading.compare.layouts.renaming:_calls",
            "parts.number + 1",
            "parts.number",
            "reading/compare/layouts",
        ),
        (
            "reading.compare.origins.across_ranks:first_origins",
            "(is_quiet or not before) and all(unit.counts.is_exact for unit in of_step)",
            "all(unit.counts.is_exact for unit in of_step)",
            "reading/compare/origins",
        ),
        (
            "reading.compare.origins.finder:OriginFinder._moving",
            "number < len(names)",
            "number + 1 < len(names)",
            "reading/compare/origins",
        ),
        (
            "reading.compare.origins.gradient_end:end_of",
            "len(leaves) != 1",
            "not leaves",
            "reading/compare/origins",
        ),
        (
            "reading.compare.pairing.alignment:Alignment._pair_children",
            "len(left_a) != len(left_b)",
            "len(left_a) == len(left_b)",
            "reading/compare/pairing",
        ),
        (
            "reading.compare.pairing.between:_gaps",
            "end >= begin",
            "end > begin",
            "reading/compare/pairing",
        ),
        (
            "reading.compare.pairing.crossed:_are_crossed",
            "len(own) < 2",
            "len(own) < 3",
            "reading/compare/pairing",
        ),
        (
            "reading.compare.pairing.operands:_is_exchanged",
            "straight <= _NEAR",
            "straight >= _NEAR",
            "reading/compare/pairing",
        ),
        (
            "reading.compare.pairing.reductions:_order",
            "[names.index(name) for name in wanted]",
            "[wanted.index(name) for name in names]",
            "reading/compare/pairing",
        ),
        (
            "reading.compare.pairing.sequence:_meeting",
            "apart + 1",
            "apart",
            "reading/compare/pairing",
        ),
        (
            "reading.compare.pairing.updates:_numbers",
            "_is_one(own_a) and _is_one(own_b)",
            "_is_one(own_a) or _is_one(own_b)",
            "reading/compare/pairing",
        ),
        (
            "reading.dumps.entry_name:parse",
            "last in (FORWARD, BACKWARD)",
            "last in (FORWARD,)",
            "reading",
        ),
        (
            "reading.dumps.kernels.step:CellPaths.__init__",
            "sorted(classes, key=lambda path: (path.count('.'), len(path)), reverse=True)",
            "sorted(classes, key=lambda path: (path.count('.'), len(path)))",
            "reading/dumps/kernels",
        ),
        (
            "reading.dumps.kernels.step:_by_slot",
            "max(found) + 1",
            "len(found)",
            "reading/dumps/kernels",
        ),
        (
            "reading.dumps.query:numbers",
            "int(match[2] or match[1]) + 1",
            "int(match[2] or match[1])",
            "reading",
        ),
        (
            "reading.one_run.nan:in_order",
            "origin.kind != RECEIVED",
            "origin.kind == RECEIVED",
            "reading/one_run/test_findings.py",
        ),
        (
            "reading.one_run.rank_checks:check_digests",
            "len(of_step) == 1",
            "len(of_step) <= 2",
            "reading/one_run/test_findings.py",
        ),
        (
            "reading.report.columns:doubled",
            "MISSING_DOUBLE if value == MISSING_SINGLE else value",
            "value",
            "reading/report",
        ),
        (
            "reading.report.content:Merged._add",
            "first_call + at",
            "first_call + place",
            "reading/report",
        ),
        (
            "reading.report.columns:is_like",
            "base.typecode == column.typecode and len(base) == len(column)",
            "len(base) == len(column)",
            "reading/report",
        ),
        (
            "reading.report.reading:_pair_state",
            "max(max(given, default=0.0), _FLOOR)",
            "max(given, default=0.0)",
            "reading/report",
        ),
        (
            "reading.dumps.values:greatest",
            "abs(real(record.get(key)) or 0.0)",
            "real(record.get(key)) or 0.0",
            "reading/report",
        ),
        (
            "recording.call_stacks:CallStacks.number",
            "(id(frame.f_code), frame.f_lasti)",
            "(id(frame.f_code), 0)",
            "capture/test_stacks.py",
        ),
        (
            "recording.step_recorder:NameFilter.begin",
            "name == self._first",
            "name != self._first",
            "recording",
        ),
        (
            "replaying.calling:Replayer.forward",
            "self.leaves_input = not np.array_equal(to_array(tensors[0]), found[0][0])",
            "self.leaves_input = np.array_equal(to_array(tensors[0]), found[0][0])",
            "replaying",
        ),
        (
            "replaying.describing:gradients",
            "(len(inputs), len(inputs) + len(named))",
            "(len(inputs),)",
            "replaying",
        ),
        (
            "replaying.evaluating:Evaluation._operation",
            "recorded.size >= largest",
            "recorded.size > largest",
            "replaying",
        ),
        (
            "replaying.judging:_judge_exact",
            "(recorded != here) & (recorded != outcome.golden)",
            "(recorded != here) | (recorded != outcome.golden)",
            "replaying",
        ),
        (
            "replaying.making:Maker._fits",
            "leaf and (item is None or list(item[0].shape) != leaf['shape'])",
            "leaf and item is None",
            "replaying",
        ),
        (
            "replaying.references:_pads",
            "[total // 2, total - total // 2]",
            "[total - total // 2, total // 2]",
            "replaying",
        ),
        ("seeding:seed_all", "0 <= seed <= LARGEST", "0 < seed <= LARGEST", "test_seeding.py"),
        ("series.file:SeriesTail.new_rows", "end - len(head)", "end", "series"),
        (
            "series.dump_rules:series_hits",
            "step not in series",
            "step in series",
            "reading/one_run/test_findings.py",
        ),
        ("session.session:_is_number", "value >= 0", "value > 0", "session"),
        (
            "session.recording:RunReport.say",
            "self.said or settings.quiet or rank",
            "self.said or not settings.quiet or rank",
            "session",
        ),
        ("snapshot.snapshot:sum_of_bits", "max(width, 4)", "width", "snapshot"),
        (
            "snapshot.snapshot:_commit",
            "(git / 'logs' / 'HEAD').read_text(errors='replace').splitlines()[-1].split()[1]",
            "(git / 'logs' / 'HEAD').read_text(errors='replace').splitlines()[-1].split()[0]",
            "snapshot",
        ),
        (
            "store.arrays:_Free.take",
            "count > self.found - self._kept",
            "count > self.found + self._kept",
            "store",
        ),
        ("store.arrays:EqualArrays._link", "copy == content.data", "copy != content.data", "store"),
        (
            "store.journal:Journal.append",
            "os.write(self._file, data) == len(data)",
            "os.write(self._file, data) != len(data)",
            "store",
        ),
        (
            "store.run_folders:RunFolders.root",
            "root = dump_path if number == 1 else f'{dump_path}-{number}'",
            "root = dump_path if number == 2 else f'{dump_path}-{number}'",
            "store",
        ),
        (
            "tasks.nan_check:FirstNonFinite.__init__",
            "hits + 1 == settings.max_hits",
            "hits == settings.max_hits",
            "tasks",
        ),
    )
)


def plant(copy, fault):
    """Write a module with its fault; return a function that takes it out again."""
    path = module_path(copy / "probe", fault.place)
    good = path.read_text("utf-8")
    try:
        path.write_text(replaced(good, fault.place, fault.code, fault.fault), "utf-8")
    except ValueError as error:
        raise SystemExit(f"{error}: the table of faults is out of date") from None
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
                print(f"{fault.place:60} {result['found']}", flush=True)
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
    parser.add_argument("--only", default="", help="only faults with this text in their place")
    parser.add_argument(
        "--minutes", type=float, default=600, help="start no run of tests after so many minutes"
    )
    parser.add_argument(
        "--results", type=Path, default=ROOT / ".planted_faults.json", help="what is known already"
    )
    parser.add_argument("--workers", type=int, choices=[1, 2], default=2, help="faults at a time")
    given = parser.parse_args()
    chosen = [fault for fault in FAULTS if given.only in fault.place]
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

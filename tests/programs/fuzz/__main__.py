# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Changes files of real dumps, runs all commands over them, and judges.

    python -m tests.programs.fuzz [--cases 20000] [--seed 1] [--jobs 2] [--minutes 0] [--only N] [--commands show,nan]
    python -m tests.programs.fuzz.without_checks

Each case is a process of its own with 20 seconds and 1 GB; ``replay``, which starts MindSpore, has 120 seconds. A
failure is a traceback, an end by a signal, an exit status that is not documented, or silence: a comparison of a dump
with its changed copy whose status is 0 although a number in it cannot be read, without a line about it. Exit status 0:
there is none. ``--only`` repeats a case and keeps its files.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.programs.fuzz import mutations, seeds

SECONDS, BYTES = 20, 1 << 30
#: what the status of a child is after an error that reaches the user
_RAISED = 99
#: files without which a command has no answer
_NEEDED = ("dump.json", "debug.json", "series.bin")
#: commands that have an answer without them
_NEED_NONE = ("recover", "check", "check alone")


class Failure(NamedTuple):
    """One case that fails: its number, what it was, and why."""

    case: int
    told: str
    reason: str


def _everything(path: str) -> int:
    """Read all that ``probe.open`` gives."""
    import probe
    from probe import ProbeError

    try:
        for dump in probe.open(path):
            for call in dump:
                str(
                    (
                        call,
                        call.cell,
                        call.parent,
                        call.stack,
                        call.inputs,
                        call.outputs,
                        call.parameters,
                        call.raised,
                    )
                )
                for tensor in call.tensors():
                    str(
                        (
                            tensor,
                            tensor.shape,
                            tensor.stats,
                            tensor.max,
                            tensor.nan_count,
                            tensor.md5,
                        )
                    )
                    str((tensor.producer, tensor.users))
                    if tensor.path:
                        _quietly(tensor.array)
            str((dump.tree, dump.header, dump.notes, list(dump.tensors())))
    except ProbeError as error:
        print(error, file=sys.stderr)
        return 1
    for file in Path(path).rglob("*.npy"):
        _quietly(lambda file=file: probe.load(file))
    return 0


def _quietly(action: Callable[[], object]) -> None:
    from probe import ProbeError

    try:
        action()
    except ProbeError as error:
        print(error, file=sys.stderr)


def commands(kind: str, seed: str, path: str) -> dict[str, list[str]]:
    """Return the commands for a kind of seed: name -> words. ``load`` has no words but the path."""
    if kind == "checkpoints":
        file = next(
            (it for it in sorted(Path(path).iterdir()) if it.name.startswith("changed.")),
            Path(path) / "x.ckpt",
        )
        whole = str(Path(seed) / file.name.replace("changed", "x"))
        return {
            "check": ["check", whole, str(file)],
            "check alone": ["check", str(file), str(file)],
        }
    if kind == "csv":
        return {"watch": ["watch", path, "--like", ""], "trend": ["trend", path, "--like", ""]}
    found = {
        "show": ["show", path],
        "nan": ["nan", path, "--jobs", "1"],
        "trend": ["trend", path, "--jobs", "1"],
        "recover": ["recover", path],
        "compare": ["compare", seed, path, "--jobs", "1", "--csv", f"{path}/../out.csv"],
        "compare back": ["compare", path, seed, "--jobs", "1", "--json", f"{path}/../out.json"],
        "report": ["report", path, "-o", f"{path}/../out.html", "--jobs", "1"],
        "report of two": ["report", seed, path, "-o", f"{path}/../out.html", "--jobs", "1"],
        "load": [path],
    }
    if kind in ("statistics", "tensor", "md5"):
        found["check"] = ["check", seed, path]
        found["check alone"] = ["check", path]
    if kind == "tensor":
        found["replay"] = ["replay", path, "--all", "--jobs", "1"]
    if kind == "ranks":
        found["ranks"] = ["ranks", path, "--jobs", "1"]
    if kind == "monitor":
        found["watch"] = ["watch", path]
    return found


def _child(words: list[str], output: int, reads: bool) -> None:
    """Become one command."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    is_slow = words[0] == "replay"  # it starts MindSpore, which maps more memory than it uses
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + BYTES
    if not is_slow:
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(6 * SECONDS if is_slow else SECONDS)
    status = _RAISED
    try:
        if reads:
            status = _everything(words[0])
        else:
            from probe.__main__ import main

            status = main(words)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 2
    except BaseException:
        traceback.print_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def run(words: list[str], reads: bool, folder: Path) -> tuple[int, str]:
    """Return the status of a command, negative for a signal, and its output."""
    file = folder / "output"
    output = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _child(words, output, reads)
    _, status = os.waitpid(pid, 0)
    os.close(output)
    return os.waitstatus_to_exitcode(status), file.read_text("utf-8", "replace")


#: kind of a change -> what a line about the file says
_REASONS = {
    "fifo": "it is a FIFO", "device": "it is a device", "dangling": "leads nowhere", "folder": "it is a folder",
    "loop": "Too many levels",
}  # fmt: skip
#: control characters and marks of direction; a cell of a table that a spreadsheet would run
_HARMFUL, _FORMULA = (
    re.compile("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]"),
    re.compile(r'(?:^|,)"?[=@]', re.MULTILINE),
)
#: fields of records and headers -> types that they never have
_WRONG = {
    **dict.fromkeys(mutations.NUMBERS, (list, dict)),
    "dtype": (list, dict, int, float),
    "shape": (dict, str, int, float),
    "framework": (list, dict, int, float),
    "task": (list, dict, int, float),
}
#: commands whose answer needs all numbers, so that they name what is lost
_NAME_LOST = ("show", "nan", "ranks", "trend", "compare", "compare back", "report", "report of two")
#: ends of the last resort: something passed the door
_LAST_RESORT = ("probe: there is not enough memory", " cannot be written: ")


def judge(status: int, output: str, silent: bool) -> str:
    """Return why a case fails, or ""."""
    told = re.search(r"Please report it, with the file (\S+)", output)
    if told:
        output += Path(told[1]).read_text()
    if status < 0:
        return "time" if -status == signal.SIGALRM else f"signal {-status}"
    if "Traceback (most recent call last)" in output:
        places = re.findall(r'File "[^"]*?/(probe/[^"]*)", line (\d+)', output)
        line = [it for it in output.splitlines() if it.strip()][-1][:100]
        return f"traceback: {line} @ {':'.join(places[-1]) if places else '?'}"
    if any(words in output for words in _LAST_RESORT):
        return f"last resort: {output.strip().splitlines()[-1][:100]}"
    if status not in (0, 1, 2):
        return f"status {status}"
    return "silent" if silent and status == 0 else ""


def one(number: int, given: argparse.Namespace, made: Path, folder: Path) -> Failure | None:
    """Run one case."""
    chosen = random.Random(f"{given.seed}-{number}")
    kinds = sorted(it.name for it in made.iterdir() if it.is_dir())
    kind = chosen.choice([it for it in kinds if not given.kinds or it in given.kinds.split(",")])
    seed, path = made / kind, folder / kind
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(seed, path)
    files = sorted(it for it in path.rglob("*") if it.is_file() and re.search(given.files, it.name))
    if not files:
        return None
    file = chosen.choice(files)
    how = mutations.change(chosen, file, given.only_places)
    if kind == "checkpoints":
        os.path.lexists(file) and os.rename(file, file.with_name(f"changed{file.suffix}"))
    names = commands(kind, str(seed), str(path))
    wanted = [name for name in names if not given.commands or name in given.commands.split(",")]
    if not wanted:
        return None
    name = chosen.choice(wanted)
    status, output = run(names[name], name == "load", folder)
    told = f"{name} {kind}/{file.relative_to(path)} ({how})"
    is_needed = file.name in _NEEDED and (
        file.name != "series.bin" or name in ("watch", "trend", "show")
    )
    is_lost = is_needed and how in ("fifo", "device", "dangling", "loop") and name not in _NEED_NONE
    is_lost |= (
        name in _NAME_LOST and how == "json_change" and _has_lost_field(made / kind, path, file)
    )
    reason = judge(status, output, silent=is_lost and file.name not in output)
    if (
        not reason
        and f"{file.name} cannot be read" in output
        and _REASONS.get(how, "") not in output
    ):
        reason = f"another reason than {_REASONS[how]}"
    if not reason and name != "load" and _HARMFUL.search(output):
        reason = "control characters on the terminal"
    table = folder / "out.csv"
    if not reason and table.exists() and _FORMULA.search(table.read_text("utf-8", "replace")):
        reason = "a formula in a table"
    table.unlink(missing_ok=True)
    if given.only is not None:
        print(f"{told}: status {status}\n{output}\n{path}")
    return Failure(number, told, reason) if reason else None


def _has_lost_field(seed: Path, path: Path, file: Path) -> bool:
    """Return whether a field of the seed has a wrong type in the changed document."""
    if file.name != "dump.json":
        return False
    try:
        before, after = (
            json.loads((top / file.relative_to(path)).read_text()) for top in (seed, path)
        )
    except (OSError, ValueError, RecursionError):
        return False
    waiting = [(before, after)]
    while waiting:
        old, new = waiting.pop()
        if isinstance(old, dict) and isinstance(new, dict) and old.get("type") == new.get("type"):
            if any(
                name in old and isinstance(new.get(name), wrong) for name, wrong in _WRONG.items()
            ):
                return True
            if isinstance(new.get("shape"), list) and not all(
                type(item) is int for item in new["shape"]
            ):
                return True
            waiting += [(old[key], new[key]) for key in old.keys() & new.keys()]
        elif isinstance(old, list) and isinstance(new, list):
            waiting += zip(old, new)
    return False


def work(first: int, given: argparse.Namespace, made: Path, output: int) -> int:
    """Run every ``jobs``-th case; write the failures. Return the number of cases."""
    import numpy as np  # noqa: F401  imported once, before the forks

    import probe.__main__
    import probe.reading.compare.answer.comparison
    import probe.reading.dumps.load
    import probe.reading.one_run.health.run_check
    import probe.reading.report.report  # noqa: F401

    end = time.monotonic() + (given.minutes * 60 or 1e9)
    count = 0
    with tempfile.TemporaryDirectory() as place:
        tempfile.tempdir = place  # the files of internal errors
        for number in range(given.first + first, given.cases, given.jobs):
            if time.monotonic() > end:
                break
            failure = one(number, given, made, Path(place))
            count += 1
            if failure:
                os.write(
                    output, f"case {failure.case}\t{failure.told}\t{failure.reason}\n".encode()
                )
                if given.until_first:
                    break
    os.write(output, f"count\t{count}\t\n".encode())
    return count


def main() -> int:
    """Run the cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--commands", default="", help="only these, as show,nan")
    parser.add_argument(
        "--kinds", default="", help="only changes of these seeds, as statistics,monitor"
    )
    parser.add_argument(
        "--files", default="", help="only changes of files whose name this regular expression finds"
    )
    parser.add_argument(
        "--only-places", action="store_true", help="only put FIFOs, links, … in the place of files"
    )
    parser.add_argument("--until-first", action="store_true", help="end with the first failure")
    parser.add_argument(
        "--seeds", type=Path, default=Path(tempfile.gettempdir()) / "probe_fuzz_seeds"
    )
    given = parser.parse_args()
    made = seeds.make(given.seeds)
    if given.only is not None:
        folder = Path(tempfile.mkdtemp())
        tempfile.tempdir = str(folder)
        failure = one(given.only, given, made, folder)
        print(failure)
        return int(failure is not None)
    ends = []
    for job in range(given.jobs):
        read, write = os.pipe()
        if os.fork() == 0:
            os.close(read)
            work(job, given, made, write)
            os._exit(0)
        os.close(write)
        ends.append(read)
    failures: list[list[str]] = []
    count = done = 0
    for end in ends:
        with os.fdopen(end, errors="replace") as lines:
            for line in lines:
                case, told, reason = line.rstrip("\n").split("\t", 2)
                if case == "count":
                    count, done = count + int(told), done + 1
                else:
                    failures.append([case, told, reason])
    kinds: dict[str, list[list[str]]] = collections.defaultdict(list)
    for failure in failures:
        kinds[failure[2]].append(failure)
    for reason, found in sorted(kinds.items(), key=lambda it: -len(it[1])):
        print(f"{len(found):5} {reason}; first: {found[0][0]} --seed {given.seed}: {found[0][1]}")
    print(f"{count} cases, {len(failures)} failures of {len(kinds)} kinds")
    if done < given.jobs:
        raise SystemExit("a process of the fuzzer itself ended too early")
    return int(bool(failures))


if __name__ == "__main__":
    raise SystemExit(main())

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Takes checks out of the door, one at a time, in a copy of the package: the fuzzer must find each.

    python -m tests.programs.fuzz.without_checks [--cases 600] [--only 3,17]

Exit status: 0 when all are found.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.programs.fuzz import seeds
from tests.support.paths import ROOT, environment
from tests.support.planting import module_path, replaced

_DOCUMENTS = ["--kinds", "statistics,tensor,md5,debug", "--files", "^(dump|debug).json$"]
_PLACES = [*_DOCUMENTS, "--only-places"]
_ARRAYS = ["--kinds", "tensor", "--files", "npy$", "--commands", "load,compare,compare back"]
_RUN = ["--kinds", "statistics", "--files", "^run.json", "--commands", "check,check alone"]
_SERIES = ["--kinds", "monitor", "--commands", "watch,trend,load"]
_JOURNAL = ["--kinds", "journal", "--commands", "recover,show,load,nan"]
_KERNELS = ["--kinds", "kernels_cpu,kernels_ascend_statistics,kernels_ascend_o1"]


class Removed(NamedTuple):
    """One check that is taken out.

    Attributes:
        place: a function of the code, as tests/support/planting.py names it.
        code: the expression that is the check; the function has it once.
        instead: the expression in its place.
        where: options of the fuzzer that lead to it.
    """

    place: str
    code: str
    instead: str
    where: list[str]


REMOVED = [
    Removed("door:open_file", "not stat.S_ISREG(mode)", "False", _PLACES),
    Removed("door:open_file", "os.O_NONBLOCK | os.O_CLOEXEC", "os.O_CLOEXEC", _PLACES),
    Removed("door:open_file", "os.path.islink(path)", "False", _PLACES),
    Removed(
        "reading.dumps.load:_fields",
        "(ValueError, SyntaxError, TypeError, RecursionError, MemoryError)",
        "(ValueError,)",
        _ARRAYS,
    ),
    Removed("reading.dumps.load:_fields", "type(shape) is not tuple", "False", _ARRAYS),
    Removed(
        "reading.dumps.load:_dtype", "(TypeError, ValueError, SyntaxError)", "ValueError", _ARRAYS
    ),
    Removed(
        "reading.dumps.load:_fields",
        "type(found) is not dict or found.keys() != {'descr', 'fortran_order', 'shape'}",
        "type(found) is not dict",
        _ARRAYS,
    ),
    Removed(
        "reading.dumps.load:array_header",
        "lengths(list(shape)) or len(shape) > _MOST_DIMENSIONS",
        "False",
        _ARRAYS,
    ),
    Removed("reading.dumps.load:_read", "(OSError, ValueError)", "OSError", _ARRAYS),
    Removed(
        "reading.dumps.load:_read",
        "(OSError, ValueError)",
        "ValueError",
        [*_ARRAYS, "--only-places"],
    ),
    Removed("reading.dumps.shapes:RECORD", "'shape'", "'no shape'", _DOCUMENTS),
    Removed("reading.dumps.shapes:RECORD", "'dtype'", "'no dtype'", _DOCUMENTS),
    Removed(
        "reading.dumps.shapes:RECORD",
        "('Max', 'Min', 'Mean', 'Norm', *_COUNTS)",
        "_COUNTS",
        _DOCUMENTS,
    ),
    Removed(
        "reading.dumps.shapes:HEADER",
        "{'task': text, 'level': text, 'framework': text, 'dump_data_dir': text, 'run': mapping}",
        "{'dump_data_dir': text, 'run': mapping}",
        _DOCUMENTS,
    ),
    Removed(
        "reading.dumps.document:Sieve._part",
        "{**value, 'value': str(value['value'])}",
        "value",
        [*_DOCUMENTS, "--commands", "compare,compare back"],
    ),
    Removed(
        "reading.dumps.values:is_tensor",
        "type(kind) is str and kind in TENSORS",
        "kind in TENSORS",
        _DOCUMENTS,
    ),
    Removed("reading.dumps.document:read_document", "RecursionError", "KeyError", _DOCUMENTS),
    Removed(
        "reading.dumps.document:read_document",
        "not isinstance(document, dict)",
        "False",
        _DOCUMENTS,
    ),
    Removed(
        "reading.dumps.folders:DumpSource.read", "not isinstance(data, dict)", "False", _DOCUMENTS
    ),
    Removed(
        "reading.dumps.folders:read_stacks",
        "not isinstance(item, list)",
        "False",
        ["--kinds", "statistics", "--files", "stack"],
    ),
    Removed(
        "reading.dumps.folders:read_construct",
        "isinstance(parent, (str, type(None)))",
        "True",
        ["--kinds", "statistics", "--files", "construct"],
    ),
    Removed(
        "reading.dumps.journal_reader:_records", "not isinstance(record, dict)", "False", _JOURNAL
    ),
    Removed(
        "reading.dumps.journal_reader:_is_wrong",
        "bool(wrong_fields(record, JOURNAL_ENTRY)) or type(record.get('name')) is not str",
        "type(record.get('name')) is not str",
        _JOURNAL,
    ),
    Removed(
        "series.file:_names",
        "type(names) is not list or not names or any(type(name) is not str for name in names)",
        "False",
        _SERIES,
    ),
    Removed(
        "series.file:table",
        "(rows[:, 0] >= 0) & (rows[:, 0] < MOST_STEP)",
        "rows[:, 0] != -7",
        _SERIES,
    ),
    Removed(
        "reading.check.snapshot:_read",
        "sieve.header(read_document(path), RUN)",
        "read_document(path)",
        _RUN,
    ),
    Removed(
        "reading.check.snapshot:_read",
        "sieve.objects(run['parameters'], PARAMETER)",
        "run['parameters']",
        _RUN,
    ),
    Removed(
        "reading.check.snapshot:_read",
        "sieve.objects(values, DESCRIBED)",
        "sieve.objects(values, {})",
        _RUN,
    ),
    Removed("reading.check.snapshot:_add", "sieve.header(line, RUN_LINE)", "line", _RUN),
    Removed(
        "reading.dumps.query:_files",
        "entry.stat(follow_symlinks=False)",
        "entry.stat()",
        ["--kinds", "tensor", "--files", "npy$", "--commands", "show", "--only-places"],
    ),
    Removed(
        "reading.dumps.kernels.tables:read_statistics",
        "(KeyError, TypeError, ValueError, AttributeError)",
        "KeyError",
        [*_KERNELS, "--files", "statistic.csv"],
    ),
    Removed(
        "reading.dumps.kernels.step:_items",
        "(OSError, ValueError, MemoryError)",
        "KeyError",
        [*_KERNELS, "--files", "npy$"],
    ),
]


def _found(removed: Removed, cases: int, made: Path) -> tuple[bool, str]:
    """Run the fuzzer on a copy of the package without a check; return whether it fails, and its answer."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(
            ROOT / "probe", Path(folder) / "probe", ignore=shutil.ignore_patterns("__pycache__")
        )
        file = module_path(Path(folder) / "probe", removed.place)
        code = file.read_text("utf-8")
        file.write_text(replaced(code, removed.place, removed.code, removed.instead), "utf-8")
        words = [
            sys.executable,
            "-m",
            "tests.programs.fuzz",
            "--until-first",
            "--seeds",
            str(made),
            "--cases",
            str(cases),
        ]
        variables = {**environment(), "PYTHONPATH": f"{folder}:{ROOT}"}
        done = subprocess.run(
            [*words, *removed.where],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.stderr and "Traceback" in done.stderr:
            raise SystemExit(done.stderr)
        return done.returncode == 1, (done.stdout or done.stderr).strip().splitlines()[0]


def main() -> int:
    """Take out one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=600, help="the most changed files for each")
    parser.add_argument("--only", default="", help="the numbers of some")
    parser.add_argument(
        "--seeds", type=Path, default=Path(tempfile.gettempdir()) / "probe_fuzz_seeds"
    )
    given = parser.parse_args()
    made, count = seeds.make(given.seeds), 0
    chosen = [int(word) for word in given.only.split(",") if word] or range(len(REMOVED))
    for number in chosen:
        began = time.monotonic()
        is_found, answer = _found(REMOVED[number], given.cases, made)
        count += is_found
        told = (
            f"{number:3} {'found' if is_found else 'NOT FOUND':9} {time.monotonic() - began:4.0f} s"
        )
        print(
            f"{told}  {REMOVED[number].place}: {REMOVED[number].code[:60]}  {answer[:120]}",
            flush=True,
        )
    print(f"{count} of {len(chosen)} found")
    return int(count < len(chosen))


if __name__ == "__main__":
    raise SystemExit(main())

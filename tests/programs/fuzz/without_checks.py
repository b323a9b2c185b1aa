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

READING = "reading/dumps/"
_DOCUMENTS = ["--kinds", "statistics,tensor,md5,debug", "--files", "^(dump|debug).json$"]
_PLACES = [*_DOCUMENTS, "--only-places"]
_ARRAYS = ["--kinds", "tensor", "--files", "npy$", "--commands", "load,compare,compare back"]
_RUN = ["--kinds", "statistics", "--files", "^run.json", "--commands", "check,check alone"]
_SERIES = ["--kinds", "monitor", "--commands", "watch,trend,load"]
_JOURNAL = ["--kinds", "journal", "--commands", "recover,show,load,nan"]
_KERNELS = ["--kinds", "kernels_cpu,kernels_ascend_statistics,kernels_ascend_o1"]


class Removed(NamedTuple):
    """One check that is taken out: the file below probe/, its text, what stands in its place, and where it matters."""

    file: str
    text: str
    instead: str
    where: list[str]


REMOVED = [
    Removed("door.py", "    if not stat.S_ISREG(mode):", "    if False:", _PLACES),
    Removed("door.py", "flags = os.O_NONBLOCK | os.O_CLOEXEC", "flags = os.O_CLOEXEC", _PLACES),
    Removed("door.py", "        if os.path.islink(path):", "        if False:", _PLACES),
    Removed(
        READING + "load.py",
        "(ValueError, SyntaxError, TypeError, RecursionError, MemoryError)",
        "(ValueError,)",
        _ARRAYS,
    ),
    Removed(READING + "load.py", "type(shape) is not tuple", "False", _ARRAYS),
    Removed(
        READING + "load.py",
        "except (TypeError, ValueError, SyntaxError):",
        "except ValueError:",
        _ARRAYS,
    ),
    Removed(
        READING + "load.py", 'or found.keys() != {"descr", "fortran_order", "shape"}', "", _ARRAYS
    ),
    Removed(
        READING + "load.py",
        "if lengths(list(shape)) or len(shape) > _MOST_DIMENSIONS:",
        "if False:",
        _ARRAYS,
    ),
    Removed(
        READING + "load.py",
        "except (OSError, ValueError) as error:",
        "except OSError as error:",
        _ARRAYS,
    ),
    Removed(
        READING + "load.py",
        "except (OSError, ValueError) as error:",
        "except ValueError as error:",
        [*_ARRAYS, "--only-places"],
    ),
    Removed(
        READING + "shapes.py",
        '"shape": lengths,\n    "data_name": text',
        '"data_name": text',
        _DOCUMENTS,
    ),
    Removed(
        READING + "shapes.py",
        '"dtype": text,\n    "shape": lengths,\n    "data_name": text',
        '"shape": lengths,\n    "data_name": text',
        _DOCUMENTS,
    ),
    Removed(
        READING + "shapes.py", '("Max", "Min", "Mean", "Norm", *_COUNTS)', "_COUNTS", _DOCUMENTS
    ),
    Removed(
        READING + "shapes.py",
        'HEADER: Shape = {\n    "task": text,\n    "level": text,\n    "framework": text,',
        "HEADER: Shape = {",
        _DOCUMENTS,
    ),
    Removed(
        READING + "document.py",
        'return {\n                **value,\n                "value": str(value["value"]),\n            }',
        "return value",
        [*_DOCUMENTS, "--commands", "compare,compare back"],
    ),
    Removed(
        READING + "values.py",
        "return type(kind) is str and kind in TENSORS",
        "return kind in TENSORS",
        _DOCUMENTS,
    ),
    Removed(
        READING + "document.py",
        "    except RecursionError:\n",
        "    except KeyError:\n",
        _DOCUMENTS,
    ),
    Removed(
        READING + "document.py",
        "    if not isinstance(document, dict):",
        "    if False:",
        _DOCUMENTS,
    ),
    Removed(
        READING + "folders.py", "    if not isinstance(data, dict):", "    if False:", _DOCUMENTS
    ),
    Removed(
        READING + "folders.py",
        "        if not isinstance(item, list):\n            continue\n",
        "",
        ["--kinds", "statistics", "--files", "stack"],
    ),
    Removed(
        READING + "folders.py",
        "        if isinstance(parent, (str, type(None))):",
        "        if True:",
        ["--kinds", "statistics", "--files", "construct"],
    ),
    Removed(
        READING + "journal_reader.py",
        "        if not isinstance(record, dict):",
        "        if False:",
        _JOURNAL,
    ),
    Removed(
        READING + "journal_reader.py", "bool(wrong_fields(record, JOURNAL_ENTRY)) or", "", _JOURNAL
    ),
    Removed(
        "series/file.py",
        "type(names) is not list or not names or any(type(name) is not str for name in names)",
        "False",
        _SERIES,
    ),
    Removed(
        "series/file.py",
        "is_right = (rows[:, 0] >= 0) & (rows[:, 0] < MOST_STEP)",
        "is_right = rows[:, 0] != -7",
        _SERIES,
    ),
    Removed(
        "reading/check/snapshot.py",
        "sieve.header(read_document(path), RUN)",
        "read_document(path)",
        _RUN,
    ),
    Removed(
        "reading/check/snapshot.py",
        'parameters = sieve.objects(run["parameters"], PARAMETER)',
        'parameters = run["parameters"]',
        _RUN,
    ),
    Removed(
        "reading/check/snapshot.py",
        "sieve.objects(values, DESCRIBED)",
        "sieve.objects(values, {})",
        _RUN,
    ),
    Removed("reading/check/snapshot.py", "sieve.header(line, RUN_LINE)", "line", _RUN),
    Removed(
        READING + "query.py",
        "entry.stat(follow_symlinks=False)",
        "entry.stat()",
        ["--kinds", "tensor", "--files", "npy$", "--commands", "show", "--only-places"],
    ),
    Removed(
        READING + "kernels/tables.py",
        "except (KeyError, TypeError, ValueError, AttributeError):",
        "except KeyError:",
        [*_KERNELS, "--files", "statistic.csv"],
    ),
    Removed(
        READING + "kernels/step.py",
        "except (OSError, ValueError, MemoryError) as error:",
        "except KeyError as error:",
        [*_KERNELS, "--files", "npy$"],
    ),
]


def _found(removed: Removed, cases: int, made: Path) -> tuple[bool, str]:
    """Run the fuzzer on a copy of the package without a check; return whether it fails, and its answer."""
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(
            ROOT / "probe", Path(place) / "probe", ignore=shutil.ignore_patterns("__pycache__")
        )
        file = Path(place) / "probe" / removed.file
        text = file.read_text()
        if text.count(removed.text) != 1:
            raise SystemExit(
                f"{removed.file} has {removed.text!r} {text.count(removed.text)} times"
            )
        file.write_text(text.replace(removed.text, removed.instead))
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
        variables = {**environment(), "PYTHONPATH": f"{place}:{ROOT}"}
        done = subprocess.run(
            [*words, *removed.where],
            cwd=place,
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
            f"{told}  {REMOVED[number].file}: {REMOVED[number].text.strip()[:60]}  {answer[:120]}",
            flush=True,
        )
    print(f"{count} of {len(chosen)} found")
    return int(count < len(chosen))


if __name__ == "__main__":
    raise SystemExit(main())

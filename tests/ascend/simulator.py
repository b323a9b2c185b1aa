# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Builds the simulated CANN, starts programs on it, and asks it in a running test what it has seen.

    python -m tests.ascend.simulator build
    python -m tests.ascend.simulator run python train.py

A program on it says ``mindspore.set_device("Ascend")``. The variables of its environment must stand before it starts.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.ascend import generate

HERE = Path(__file__).resolve().parent
#: names under which CANN's parts are loaded; all are one library
_NAMES = (
    (
        "ascendcl ge_runner graph msprofiler hccl runtime platform c_sec nnopbase ascend_hal opapi profapi "
        "acl_op_compiler acl_tdt_channel acl_tdt_queue "
        "error_manager cann_kb aoe_executor opskernel slice compress d_collective host_cpu_engine"  # of MindSpore 2.7
    ).split()
)
_LIBRARY = "libsimulated_cann.so"
_MARK = "ASCEND_SIM_ROOT"


def build() -> Path:
    """Build the simulator for the MindSpore of this interpreter, unless it is there; return its folder."""
    library = Path(importlib.util.find_spec("mindspore").origin).parent / "lib"
    if not (library / "plugin" / "ascend").is_dir():
        raise SystemExit(
            "this MindSpore has no Ascend backend: the simulator needs the Linux wheel for x86-64"
        )
    root = (
        HERE / "built" / _fingerprint(library) / "latest"
    )  # MindSpore looks for this name in the path
    if not (root / "ready").exists():
        shutil.rmtree(root, ignore_errors=True)  # others stay: a program may run on them
        _compile(library, root)
        (root / "ready").touch()
    return root


def _sources() -> list[Path]:
    return sorted(
        path for path in (HERE / "source").rglob("*") if path.suffix in (".c", ".h", ".cc")
    )


def _fingerprint(library: Path) -> str:
    made = hashlib.sha256(str(library).encode())
    for path in [*_sources(), HERE / "generate.py", *sorted((HERE / "packages").rglob("*.py"))]:
        made.update(path.read_bytes())
    return made.hexdigest()[:12]


def _compile(library: Path, root: Path) -> None:
    objects, links = root / "objects", root / "lib64"
    packages = root / "opp" / "built-in" / "op_impl" / "ai_core" / "tbe"
    for folder in (objects, links / "driver", root / "compiler"):
        folder.mkdir(parents=True)
    compiled = []
    for source in (path for path in _sources() if path.suffix != ".h"):
        compiled.append(objects / f"{source.stem}.o")
        _compile_file(source, compiled[-1])
    count = generate.write(library, compiled, objects / "generated.c")
    _compile_file(objects / "generated.c", objects / "generated.o")
    command = [
        "g++",
        "-shared",
        "-o",
        links / _LIBRARY,
        *compiled,
        objects / "generated.o",
        "-lpthread",
        "-lm",
    ]
    subprocess.run(command, check=True)
    for name in _NAMES:
        (links / f"lib{name}.so").symlink_to(_LIBRARY)
    (links / "driver" / "libascend_hal.so").symlink_to(Path("..") / _LIBRARY)
    (root / "compiler" / "version.info").write_text("Version=8.5.0\n")
    shutil.copytree(HERE / "packages", packages)
    print(
        f"the simulated CANN has {count[0]} operators of MindSpore, and {count[1]} stubs: {root}",
        file=sys.stderr,
    )


def _compile_file(source: Path, target: Path) -> None:
    if source.suffix == ".cc":
        command = ["g++", "-D_GLIBCXX_USE_CXX11_ABI=0"]
    else:
        command = ["gcc", "-std=gnu11", "-Wall", "-Wno-unused-variable", "-Wno-unused-function"]
    subprocess.run([*command, "-c", "-fPIC", "-O2", "-o", target, source], check=True)


def environment(root: Path) -> dict[str, str]:
    """Return the environment of a program on the simulator in a folder."""
    packages = root / "opp" / "built-in" / "op_impl" / "ai_core" / "tbe"
    path = os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")]))
    return {
        **os.environ,
        "ASCEND_HOME_PATH": str(root),
        "ASCEND_OPP_PATH": str(root / "opp"),
        "LD_LIBRARY_PATH": f"{root / 'lib64'}{os.pathsep}{root / 'lib64' / 'driver'}",
        "PYTHONPATH": path,
        "MS_ENABLE_LCCL": "off",
        _MARK: str(root),
    }


def is_running() -> bool:
    """Whether this process was started on the simulator."""
    return _MARK in os.environ


class Device:
    """The simulated device of this process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(str(Path(os.environ[_MARK]) / "lib64" / _LIBRARY))
        self._library.sim_count.restype = ctypes.c_uint64
        self._library.sim_bytes_held.restype = ctypes.c_uint64
        self._library.sim_record_stop.restype = ctypes.c_char_p

    def count(self, place: str) -> int:
        """Return how often something happened at a place, as the grammar of a plan names it."""
        return self._library.sim_count(place.encode())

    @property
    def bytes_held(self) -> int:
        """The bytes of the device that MindSpore holds."""
        return self._library.sim_bytes_held()

    def plan(self, text: str = "") -> None:
        """Plan failures and delays from now on; a device that has failed works again."""
        rules = [rule for rule in text.split(";") if rule.strip()]
        assert self._library.sim_plan(text.encode()) == len(rules), (
            f"this plan cannot be read: {text}"
        )

    @contextlib.contextmanager
    def record(self):
        """Yield a list that holds, after the block, what the host asked of the device: one line for each."""
        lines: list[str] = []
        self._library.sim_record_start()
        try:
            yield lines
        finally:
            lines += self._library.sim_record_stop().decode().splitlines()


def by_kind(lines: list[str]) -> Counter[str]:
    """Return how many launches, copies, fills, waits and allocations a record has."""
    return Counter(line.split()[0] for line in lines)


def main() -> int:
    """Build the simulator; run a command on it if there is one."""
    action, *command = sys.argv[1:] or ["build"]
    root = build()
    if action == "run":
        os.execvpe(command[0], command, environment(root))
    print(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())

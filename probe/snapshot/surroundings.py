# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The circumstances of a process: its command, code, packages, environment, and MindSpore's context."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

from probe.snapshot.secrets import is_secret, without_secrets, words_without_secrets

#: the variables of the environment that are noted begin with one of these
_PREFIXES = tuple(
    "MS_ MINDSPORE_ HCCL_ ASCEND_ ATB_ ACLNN_ GLOG_ OMP_ OPENBLAS_ MKL_ PYTHONHASHSEED RANK DEVICE_ID".split()
)
_CONTEXT = "mode device_target jit_level deterministic pynative_synchronize".split()
_PACKAGE = re.compile(r"(.+?)-(.+?)(?:-py\d[\d.]*)?\.(?:dist-info|egg-info)")
_SITE = "site-packages"
#: at most so many files of the training's code have a checksum
_MOST_FILES = 300


def surroundings() -> dict[str, Any]:
    """Return the circumstances of this process; without secrets."""
    import mindspore

    names = [name for name in sorted(os.environ) if name.startswith(_PREFIXES) and not is_secret(name)]
    return {
        "command": words_without_secrets(sys.argv), "folder": without_secrets(os.getcwd()), "host": platform.node(),
        "process": os.getpid(), "python": platform.python_version(), "packages": _packages(),
        "code": _code(os.path.dirname(os.path.abspath(sys.argv[0] or "."))),
        "context": {key: mindspore.get_context(key) for key in _CONTEXT},
        "environment": {name: without_secrets(os.environ[name]) for name in names},
    }  # fmt: skip


def _code(folder: str) -> dict[str, Any]:
    """Return the commit of the training's code, and a checksum of each of its files that was imported."""
    beginning, modules = f"{folder}{os.sep}", list(sys.modules.values())
    files = [vars(module).get("__file__") for module in modules if isinstance(module, ModuleType)]
    own = sorted(file for file in files if type(file) is str and file.startswith(beginning) and _SITE not in file)
    paths = {os.path.relpath(file, folder): Path(file) for file in own[:_MOST_FILES] if os.path.isfile(file)}
    sums = {name: f"{zlib.crc32(path.read_bytes()):08x}" for name, path in paths.items()}
    return {"commit": next(filter(None, map(_commit, (Path(folder), *Path(folder).parents))), None), "files": sums}


def _commit(folder: Path) -> str | None:
    """Return the commit that is checked out in a folder, by the end of git's log of it; None if it is no repository."""
    git = folder / ".git"
    with contextlib.suppress(OSError, IndexError):
        if git.is_file():  # a further worktree
            git = folder / git.read_text().split(":", 1)[1].strip()
        return (git / "logs" / "HEAD").read_text(errors="replace").splitlines()[-1].split()[1]
    return None


def _packages() -> dict[str, str]:
    """Return package -> version of all that is installed. The names of folders tell them, so that none is opened."""
    found: dict[str, str] = {}
    for folder in filter(os.path.isdir, sys.path):
        names = [name for name in os.listdir(folder) if name.endswith("-info")]
        for match in filter(None, map(_PACKAGE.fullmatch, names)):
            found.setdefault(match[1].lower().replace("_", "-"), match[2])
    return dict(sorted(found.items()))

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
from collections.abc import Iterable
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


class Surroundings:
    """The circumstances of this process. All that no training changes is read when the object is made."""

    def __init__(self) -> None:
        script = Path(os.path.abspath(sys.argv[0] or "."))
        self._folder, self._modules = str(script.parent), set(sys.modules)
        self._files = _checksums(self._folder, self._modules)
        self._fixed = {
            "command": words_without_secrets(sys.argv), "host": platform.node(), "python": platform.python_version(),
            "packages": _packages(), "commit": next(filter(None, map(_commit, script.parents)), None),
        }  # fmt: skip

    def now(self) -> dict[str, Any]:
        """Return the circumstances, without secrets. Modules that came later are looked at now."""
        import mindspore

        fixed, names = dict(self._fixed), [name for name in sorted(os.environ) if name.startswith(_PREFIXES)]
        self._files.update(_checksums(self._folder, sys.modules.keys() - self._modules))
        self._modules.update(sys.modules)
        return {
            "folder": without_secrets(os.getcwd()), "process": os.getpid(),
            "code": {"commit": fixed.pop("commit"), "files": dict(sorted(self._files.items())[:_MOST_FILES])}, **fixed,
            "context": {key: mindspore.get_context(key) for key in _CONTEXT},
            "environment": {name: without_secrets(os.environ[name]) for name in names if not is_secret(name)},
        }  # fmt: skip


def _checksums(folder: str, names: Iterable[str]) -> dict[str, str]:
    """Return a checksum of the file of each module that lies in a folder, by the file's path there."""
    beginning, modules = f"{folder}{os.sep}", [sys.modules.get(name) for name in names]
    files = [vars(module).get("__file__") for module in modules if isinstance(module, ModuleType)]
    own = sorted(file for file in files if type(file) is str and file.startswith(beginning) and _SITE not in file)
    paths = {os.path.relpath(file, folder): Path(file) for file in own[:_MOST_FILES] if os.path.isfile(file)}
    return {name: f"{zlib.crc32(path.read_bytes()):08x}" for name, path in paths.items()}


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

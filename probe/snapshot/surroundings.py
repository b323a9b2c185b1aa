# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The circumstances of a process: its command, code, packages, environment, and MindSpore's context."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import subprocess
import sys
from typing import Any

from probe.snapshot.secrets import is_secret, without_secrets, words_without_secrets

#: the variables of the environment that are noted begin with one of these
_PREFIXES = tuple(
    "MS_ MINDSPORE_ HCCL_ ASCEND_ ATB_ ACLNN_ GLOG_ OMP_ OPENBLAS_ MKL_ PYTHONHASHSEED RANK DEVICE_ID".split()
)
_CONTEXT = "mode device_target jit_level deterministic pynative_synchronize".split()
_PACKAGE = re.compile(r"(.+?)-(.+?)(?:-py\d[\d.]*)?\.(?:dist-info|egg-info)")
_GIT = "git --no-optional-locks -c core.fsmonitor=false status --porcelain=v2 --branch --untracked-files=no".split()
#: seconds after which the state of the code is not waited for
_PATIENCE = 1


def surroundings() -> dict[str, Any]:
    """Return the circumstances of this process; without secrets."""
    import mindspore

    names = [name for name in sorted(os.environ) if name.startswith(_PREFIXES) and not is_secret(name)]
    return {
        "command": words_without_secrets(sys.argv),
        "folder": without_secrets(os.getcwd()),
        "host": platform.node(),
        "process": os.getpid(),
        "python": platform.python_version(),
        "code": _code(os.path.dirname(os.path.abspath(sys.argv[0] or "."))),
        "packages": _packages(),
        "context": {key: mindspore.get_context(key) for key in _CONTEXT},
        "environment": {name: without_secrets(os.environ[name]) for name in names},
    }


def _code(folder: str) -> dict[str, Any] | None:
    """Return the commit of the training's code, and whether files of it were changed since; None without git."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run(_GIT, cwd=folder, capture_output=True, text=True, timeout=_PATIENCE, check=True).stdout
        commits = [line.split()[-1] for line in said.splitlines() if line.startswith("# branch.oid ")]
        return {"commit": commits[0], "changed": any(not line.startswith("#") for line in said.splitlines())}
    return None


def _packages() -> dict[str, str]:
    """Return package -> version of all that is installed. The names of folders tell them, so that none is opened."""
    found: dict[str, str] = {}
    for folder in filter(os.path.isdir, sys.path):
        for match in filter(None, map(_PACKAGE.fullmatch, os.listdir(folder))):
            found.setdefault(match[1].lower().replace("_", "-"), match[2])
    return dict(sorted(found.items()))

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Processes that compute as another processor would.

OpenBLAS takes the kernels of the processor that ``OPENBLAS_CORETYPE`` names. numpy does without the instructions that
``NPY_DISABLE_CPU_FEATURES`` names.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from numpy.core import _multiarray_umath as _numpy

from tests.support.paths import ROOT

#: the instructions that a kernel needs, as numpy names them
_NEEDS = {
    "Haswell": ("AVX2", "FMA3"),
    "Zen": ("AVX2", "FMA3"),
    "SkylakeX": ("AVX512F", "AVX512_SKX"),
    "Prescott": ("SSE3",),
}
_EXTRA = [name for name in _numpy.__cpu_dispatch__ if _numpy.__cpu_features__.get(name)]
_WITHOUT = {"NPY_DISABLE_CPU_FEATURES": " ".join(_EXTRA)}
#: how processes are started that behave like a processor
ALL: dict[str, dict[str, str]] = {
    "this one": {},
    **{name: {"OPENBLAS_CORETYPE": name} for name in _NEEDS},
    "numpy without SIMD variants": _WITHOUT,
    "Prescott, numpy without SIMD variants": {"OPENBLAS_CORETYPE": "Prescott", **_WITHOUT},
}
_CORE = "from tests.support import processors; print(processors.core())"


def core():
    """Return the name of the kernels that numpy's OpenBLAS took, or nothing where numpy has no OpenBLAS of its own."""
    for path in Path(np.__file__).parent.parent.glob("numpy.libs/*openblas*"):
        library = ctypes.CDLL(str(path))
        for suffix in ("64_", ""):
            function = getattr(library, f"openblas_get_corename{suffix}", None)
            if function is not None:
                function.restype = ctypes.c_char_p
                return function().decode()
    return ""


@contextlib.contextmanager
def all_of_them():
    """Start programs that may run on all processors, though this process of pytest keeps to its own.

    Several ranks need them: a rank gives the thread of its connection 40 ms to reach the scheduler, then asks again.
    """
    if not hasattr(os, "sched_setaffinity"):  # macOS
        yield
        return
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count()))
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def missing(name):
    """Return what is missing here to behave like a processor, or nothing."""
    variables = ALL[name]
    if variables.get("NPY_DISABLE_CPU_FEATURES") == "":
        return "numpy has no SIMD variants for this processor"
    wanted = variables.get("OPENBLAS_CORETYPE")
    if wanted is None:
        return ""
    lacking = [feature for feature in _NEEDS[wanted] if not _numpy.__cpu_features__.get(feature)]
    if lacking:
        return f"this processor has no {' '.join(lacking)}"
    found = run([sys.executable, "-c", _CORE], name).stdout.strip()
    return (
        ""
        if found == wanted
        else f"numpy's OpenBLAS takes the kernels {found or 'of no name'} in place of {wanted}"
    )


def run(command, name):
    """Run a command on a processor of this name."""
    return subprocess.run(
        command,
        env={**os.environ, **ALL[name]},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )

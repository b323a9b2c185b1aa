# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The tests of measuring, as other processors would run them: ``make test-processors``.

OpenBLAS takes the kernels of the processor that ``OPENBLAS_CORETYPE`` names. numpy does without the instructions that
``NPY_DISABLE_CPU_FEATURES`` names. ``pytest`` collects this file only where it is named.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.core import _multiarray_umath as _numpy

HERE = Path(__file__).resolve().parent
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
_CORE = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import processors
print(processors.core())
"""


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
    found = _run([sys.executable, "-c", _CORE], name).stdout.strip()
    return "" if found == wanted else f"numpy's OpenBLAS takes the kernels {found or 'of no name'} in place of {wanted}"


def _run(command, name):
    environment = {**os.environ, **ALL[name]}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=HERE.parent)


@pytest.fixture(params=ALL)
def processor(request):
    reason = missing(request.param)
    if reason:
        pytest.skip(reason)
    return request.param


def test_measuring(processor):
    done = _run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/measure"], processor)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.fixture(scope="module")
def here():
    return _accuracy("this one")


def _accuracy(name):
    """Return the digest of all texts."""
    done = _run([sys.executable, "benchmarks/accuracy.py", "--here", "--quick"], name)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)["digest"]


def test_texts_are_the_same(here, processor):
    """The order of additions is fixed on x86-64; elsewhere only the bound holds."""
    assert _accuracy(processor) == here

# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The tests of measuring, as other processors would run them: ``make test-processors``.

pytest collects this file only where it is named.
"""

from __future__ import annotations

import json
import sys

import pytest

from tests.support.processors import ALL, missing, run


@pytest.fixture(params=ALL)
def processor(request):
    reason = missing(request.param)
    if reason:
        pytest.skip(reason)
    return request.param


def test_measuring(processor):
    done = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/measure"], processor)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.fixture(scope="module")
def texts_here():
    return _texts("this one")


def _texts(name):
    """Return the digest of all texts."""
    done = run([sys.executable, "benchmarks/accuracy.py", "--here", "--quick"], name)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)["digest"]


def test_texts_are_the_same(texts_here, processor):
    """The order of additions is fixed on x86-64; elsewhere only the bound holds."""
    assert _texts(processor) == texts_here

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


def test_texts_are_the_same(processor):
    """The order of additions is fixed on x86-64; elsewhere only the bound holds."""
    command = [sys.executable, "benchmarks/accuracy.py", "--here", "--quick"]
    here, there = (run(command, name) for name in ("this one", processor))
    assert here.returncode == there.returncode == 0, there.stderr[-3000:]
    assert json.loads(here.stdout) == json.loads(there.stdout)

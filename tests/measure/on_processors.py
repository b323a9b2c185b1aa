# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The tests of measuring, as other processors would run them: ``make test-processors``.

pytest collects this file only where it is named. As this processor runs them, they are in ``make test``.
"""

from __future__ import annotations

import sys

import pytest

from tests.support.processors import ALL, core, missing, run

OWN = {"OPENBLAS_CORETYPE": core()}


@pytest.fixture(params=[name for name, changes in ALL.items() if changes and changes != OWN])
def processor(request):
    reason = missing(request.param)
    if reason:
        pytest.skip(reason)
    return request.param


def test_measuring(processor):
    done = run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/measure"], processor
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]

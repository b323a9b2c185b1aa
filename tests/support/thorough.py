# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Cases that only `make test-all` runs: the same as others on more nets, layouts or modes."""

from __future__ import annotations

import pytest


def thorough_but(often, cases):
    """Return cases for ``parametrize``: all that ``often`` does not name are marked thorough."""
    missing = set(often) - set(cases)
    assert not missing, f"no such case: {missing}"
    marked = pytest.mark.thorough
    alone = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [
        case if case in often else pytest.param(*values, marks=marked)
        for case, values in zip(cases, alone)
    ]

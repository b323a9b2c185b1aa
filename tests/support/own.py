# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Statistics of one's own in a test: those of other tests are not known."""

from __future__ import annotations

import contextlib

from probe.config.own_statistics import own_statistics


@contextlib.contextmanager
def none_registered():
    """Forget the registered statistics before and after."""
    own_statistics.cache_clear()
    yield
    own_statistics.cache_clear()

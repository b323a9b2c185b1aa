# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Hides our hooks from MindSpore's hook counter, so that jit functions are not compiled again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

_COUNT = "_HOOK_VERSION"


@contextlib.contextmanager
def preserve_hook_version() -> Iterator[None]:
    """Register and remove hooks without a trace in the count that MindSpore keys its compiled functions with.

    Optimizers are such functions: each step would compile them once more and keep what was compiled (2.8 and 2.9). None
    of our hooks is ever compiled: those of Cells are taken out while something is, and a parameter's runs outside.
    """
    from mindspore.common import hook_handle

    before = getattr(hook_handle, _COUNT, None)
    try:
        yield
    finally:
        if before is not None:
            setattr(hook_handle, _COUNT, before)

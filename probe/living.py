# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The living objects of some classes."""

from __future__ import annotations

import gc
from typing import Any


def living(*kinds: type) -> list[Any]:
    """Return the living objects of these classes and of their subclasses.

    ``gc.get_objects`` would hold every tuple that another thread is just building, and so break it: CPython raises
    SystemError there.
    """
    classes: dict[type, None] = {}
    waiting = list(kinds)
    while waiting:
        kind = waiting.pop()
        if kind not in classes:
            classes[kind] = None
            waiting += type.__subclasses__(kind)
    # by the type: isinstance would ask objects that pretend to be of another class
    return [found for found in gc.get_referrers(*classes) if type(found) in classes]

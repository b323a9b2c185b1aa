# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The tests in this folder run in GRAPH_MODE."""

from __future__ import annotations

import mindspore as ms
import pytest


@pytest.fixture
def graph_mode():
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)

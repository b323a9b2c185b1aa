# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Whether MindSpore has hooks for the tensors that a forward keeps for its backward; 2.7.2 has none."""

from __future__ import annotations

import pytest

from probe.executor import pynative_executor

needs_hooks = pytest.mark.skipif(
    not hasattr(type(pynative_executor()), "is_saved_tensor_hook_active"),
    reason="this MindSpore has no hooks for saved tensors",
)

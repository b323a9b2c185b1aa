# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A simulated CANN, on which MindSpore's own Ascend backend trains on this CPU. README.md describes it."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Changes a training on purpose: one thing from outside, the smallest set that matters, planted faults."""

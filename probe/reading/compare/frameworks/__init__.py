# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A dump of PyTorch beside one of MindSpore: one word for one thing."""

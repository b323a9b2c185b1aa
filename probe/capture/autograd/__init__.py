# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Gradients, read by hooks on the nodes of MindSpore's autograd graph."""

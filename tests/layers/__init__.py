# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tests of probe/layers: another layer above PyNative, described in a few lines, and torch on MindSpore."""

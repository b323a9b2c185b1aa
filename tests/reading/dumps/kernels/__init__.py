# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tests of probe/reading/dumps/kernels: one file set for each layout that MindSpore's documentation describes."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Checks of the source code itself: its numbers, and its imports."""

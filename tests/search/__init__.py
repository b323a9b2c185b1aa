# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tests of the room search/."""

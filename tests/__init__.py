# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tests of probe: one folder a room of probe/, and tests of the whole beside them."""

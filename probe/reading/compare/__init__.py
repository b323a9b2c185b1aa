# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares two dumps and names the places where differences begin."""

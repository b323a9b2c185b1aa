# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Findings as facts, and one table that puts them into words."""

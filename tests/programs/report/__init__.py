# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Runs for the report, its pictures and its tests in a browser."""

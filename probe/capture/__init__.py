# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Capture backends: each reports the calls of a training to a step recorder."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads MindSpore's own kernel dump, in each of its layouts. Knows no MindSpore."""

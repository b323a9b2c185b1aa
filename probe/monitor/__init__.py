# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Task "monitor": a few numbers of every step, in one file. Rules look at each step, and an alarm starts a dump."""

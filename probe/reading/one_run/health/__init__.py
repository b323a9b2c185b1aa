# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Faults that one run shows by itself: each rule looks at the facts of its steps."""

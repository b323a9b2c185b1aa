# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The tasks: one strategy for each kind of dump."""

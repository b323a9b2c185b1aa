# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Proofs of `probe try`, `probe bisect` and `probe drill`."""

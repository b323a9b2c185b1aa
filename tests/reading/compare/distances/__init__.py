# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How far apart two records are, and how far they may be."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The first stage of compare: which call of B stands for which of A."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""First stage: which call of A stands for which call of B."""

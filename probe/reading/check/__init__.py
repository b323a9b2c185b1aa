# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe check``: are two runs, or two checkpoints, the same experiment?"""

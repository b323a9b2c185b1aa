# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two checkpoints, or a checkpoint and a run: their parameters, one piece in memory at a time."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Sees a loss, a gradient and an update where they happen. Dump, monitor, TrainerMon and `probe run` listen."""

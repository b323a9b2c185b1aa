# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trainings after public reports of trouble with accuracy, each with ten faults: `probe compare` must name each."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trainings with a fault or a harmless change behind the backward, for each kind of optimizer."""

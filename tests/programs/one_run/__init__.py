# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Faults and healthy trainings for `probe check RUN`, which has no golden run."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Small trainings that are sick on purpose; each is a program that knows nothing of probe."""

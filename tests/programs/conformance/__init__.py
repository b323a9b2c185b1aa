# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Programs that record with probe or with msprobe, each in an interpreter that has it."""

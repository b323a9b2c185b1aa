# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""TrainerMon: msprobe's monitor by name, with its settings file and its csv files."""

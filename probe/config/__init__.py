# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The settings: rows, validators and the readers of the settings file. Knows no MindSpore."""

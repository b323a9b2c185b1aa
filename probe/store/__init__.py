# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The files of a dump. Knows no MindSpore."""

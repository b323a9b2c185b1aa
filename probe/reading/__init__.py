# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Work on dumps that are on disk. Knows no MindSpore."""

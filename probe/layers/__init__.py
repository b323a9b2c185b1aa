# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The layers above PyNative in which a program writes its model: MindSpore's Cells, and torch on MindSpore."""

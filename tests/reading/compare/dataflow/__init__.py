# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The third stage of compare: who made what, and which differences follow from others."""

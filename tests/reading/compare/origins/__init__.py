# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The fourth stage of compare: the places where differences begin."""

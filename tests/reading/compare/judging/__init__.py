# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The second stage of compare: the verdict on each place of a pair."""

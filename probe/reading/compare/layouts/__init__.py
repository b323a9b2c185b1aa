# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares runs of different parallel layouts: the ranks of each side are put together to the whole model."""

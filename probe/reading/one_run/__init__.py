# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Answers of one run, without a golden one: NaN/Inf, ranks, trends."""

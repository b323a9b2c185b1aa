# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""This process and others: its rank, signals, forks and header, a progress line, and a process that may crash."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Dumps of other parallel layouts against one of a single rank."""

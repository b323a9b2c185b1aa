# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The command line: one module for each family of commands."""

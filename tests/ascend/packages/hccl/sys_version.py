# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The version that the package has."""

__sys_version__ = "8.5.0"

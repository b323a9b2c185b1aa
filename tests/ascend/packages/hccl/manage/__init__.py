# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The part of the package that manages groups."""

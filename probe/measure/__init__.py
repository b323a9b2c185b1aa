# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A value becomes numbers: exact arrays, statistics, the JSON shape of nested arguments."""

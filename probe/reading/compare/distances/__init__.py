# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The distance of two records, and the greatest distance that is agreement."""

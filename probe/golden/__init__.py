# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A training beside a golden run: each entry is compared while it is made, and the first difference is written."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A benchmark of ``probe compare``: public nets, each changed in one place, and harmless changes."""

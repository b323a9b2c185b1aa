# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""What a snapshot of a run notes about its process and its values."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Fifth stage: the origins of all steps and ranks in words, tables and files."""

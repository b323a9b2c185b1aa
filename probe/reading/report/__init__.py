# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe report``: one self-contained page of a run, or of two."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe run``: records a training whose files stay as they are."""

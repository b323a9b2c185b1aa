# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Level L2: MindSpore's own kernel dump, configured and driven for the user."""

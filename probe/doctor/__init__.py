# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe doctor``: proves on the user's own machine, with its MindSpore and its device, that probe works there."""

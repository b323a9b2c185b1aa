# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Programs that run on several ranks under MindSpore's launcher."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Third stage: which difference may follow from which."""

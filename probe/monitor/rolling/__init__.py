# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Rolling records: each step records a few calls, so that each call is recorded once in a round of steps."""

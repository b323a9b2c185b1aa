# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Programs of the tests of the monitor."""

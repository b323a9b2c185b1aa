# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes recorded calls again, in float64, and judges their recorded outputs."""

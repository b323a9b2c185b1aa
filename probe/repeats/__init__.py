# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes a step once more at an alarm, and says what that tells. All is put back."""

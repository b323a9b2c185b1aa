# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Series of numbers over steps: their file, the rules, and the evaluators of the rules."""

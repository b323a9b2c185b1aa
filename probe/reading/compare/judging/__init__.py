# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Second stage: how far apart the tensors of a pair are, and whether that is a difference."""

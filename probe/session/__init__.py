# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A session: the states of start, stop and step, and all that is recorded between them."""

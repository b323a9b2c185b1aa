# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Programs that plant a fault or a harmless change in a training and compare its dump with the golden one."""

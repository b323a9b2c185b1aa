# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A stand-in for CANN's package hccl, which MindSpore imports before it starts a cluster."""

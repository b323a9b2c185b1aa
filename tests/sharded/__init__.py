# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trainings of today: sharded tensors, gathered parameters, pipelines, other trainers, an untested MindSpore."""

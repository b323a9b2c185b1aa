# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trainings whose text a user has edited: rewritings, faults, and faults beside a rewriting."""

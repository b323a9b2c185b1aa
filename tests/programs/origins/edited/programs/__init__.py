# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The trainings as they are: a model ``Net``, its optimizer, its loss, and a batch for each step."""

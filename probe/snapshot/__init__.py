# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The snapshot of a run: its circumstances, in run.json and run.jsonl, for `probe check`."""

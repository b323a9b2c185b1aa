# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Files of torch.save: real ones, made by samples.py, and made-up ones that must be refused."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A grammar fuzzer: changes files of real dumps, and runs every command over them."""

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Settings files of both formats."""

from __future__ import annotations

import json

import pytest

BOTH = pytest.mark.parametrize("name", ["config.json", "config.yaml"])


def as_bytes(content):
    """Return the bytes of a file with this content: bytes, a text, or values to be written as JSON."""
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content)).encode()

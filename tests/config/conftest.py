# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Fixtures that write a settings file and read it: one for files that work, one for files that do not."""

from __future__ import annotations

import pytest

from probe import SettingsError
from probe.config import loading
from tests.support.settings_files import as_bytes


@pytest.fixture
def load(tmp_path):
    """Return a function that writes a file and returns its settings."""

    def load(content, name="config.json", **arguments):
        (tmp_path / name).write_bytes(as_bytes(content))
        return loading.load(tmp_path / name, **arguments)

    return load


@pytest.fixture
def error(load):
    """Return a function that writes a file and returns the message of its error."""

    def error(content, name="config.json", **arguments):
        with pytest.raises(SettingsError) as caught:
            load(content, name, **arguments)
        message = str(caught.value)
        message.encode()  # every stream of UTF-8 can print it
        assert len(message) < 1000
        return message

    return error

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads a JSON or YAML file. Every mistake in it is a SettingsError that names the file."""

from __future__ import annotations

import json
from typing import Any

from probe.config import json_reader
from probe.config.messages import errors_about, refuse
from probe.door import open_file
from probe.errors import SettingsError
from probe.findings.sentence import say

_LARGEST = 10_000_000  # largest file that is read, in bytes


def read(path: str) -> dict[Any, Any]:
    """Return the keys and values of a file, JSON if its name ends in .json, else YAML. SettingsError has the line."""
    with errors_about(path):
        with open_file(path) as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise SettingsError(say("settings.large", size=_LARGEST // 1_000_000))
        text = _decode(data)
        if path.lower().endswith(".json"):
            content = json_reader.parse(text)
        else:
            from probe.config import yaml_reader  # imports yaml, which readers of JSON do not need

            content = yaml_reader.parse(text)
        if not isinstance(content, dict):
            refuse("content", content, say("settings.keys_and_values"))
        return content


def _decode(data: bytes) -> str:
    if not json.detect_encoding(data).startswith("utf-8"):
        raise json_reader.mistake("", say("settings.utf16"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = say("settings.no_utf8", byte=f"{error.object[error.start]:#x}")
        raise json_reader.mistake(error.object[: error.start].decode("utf-8"), problem) from error

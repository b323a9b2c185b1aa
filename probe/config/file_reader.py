# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads a JSON or YAML file. Every mistake in it is a SettingsError that names the file."""

from __future__ import annotations

import json
from typing import Any

from probe.config import json_reader
from probe.config.messages import errors_about, refuse
from probe.door import open_file
from probe.errors import SettingsError

_LARGEST = 10_000_000  # largest file that is read, in bytes


def read(path: str) -> dict[Any, Any]:
    """Return the keys and values of a file, JSON if its name ends in .json, else YAML. SettingsError has the line."""
    with errors_about(path):
        with open_file(path) as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise SettingsError(f"the file is larger than {_LARGEST // 1_000_000} MB")
        text = _decode(data)
        if path.lower().endswith(".json"):
            content = json_reader.parse(text)
        else:
            from probe.config import yaml_reader  # imports yaml, which readers of JSON do not need

            content = yaml_reader.parse(text)
        if not isinstance(content, dict):
            refuse("content", content, "an object with keys and values")
        return content


def _decode(data: bytes) -> str:
    if not json.detect_encoding(data).startswith("utf-8"):
        raise json_reader.mistake("", "the file is encoded in UTF-16 or UTF-32. Save it as UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = (
            f"byte {error.object[error.start]:#x} is not UTF-8. Save the file as UTF-8, not as GBK."
        )
        raise json_reader.mistake(error.object[: error.start].decode("utf-8"), problem) from error

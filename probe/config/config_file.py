# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The settings file: loads it, and loads it again when it was edited."""

from __future__ import annotations

import os
from typing import Any

from probe.config import validators
from probe.config.settings import PathLike, Settings, load


class ConfigFile:
    """A settings file with the arguments that win over it; notices edits.

    Args:
        config_path: the file, or None. A relative path belongs to the folder that is current now.
        **arguments: values that win over the file; see ``load``.

    Raises:
        SettingsError: when config_path is not a path.
    """

    def __init__(self, config_path: PathLike | None, **arguments: Any) -> None:
        self._path = None if config_path is None else validators.path("config_path", config_path)
        self._arguments = arguments
        self._seen = self._stamp()

    def load(self) -> Settings:
        """Return the settings; see ``load``."""
        return load(self._path, **self._arguments)

    def changed(self) -> Settings | None:
        """Return the settings if the file was edited since the last call, else None.

        Raise SettingsError when the edited file is wrong; once per edit.
        """
        stamp = self._stamp()
        if stamp is None or stamp == self._seen:
            return None
        self._seen = stamp
        return self.load()

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = None if self._path is None else os.stat(self._path)
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)

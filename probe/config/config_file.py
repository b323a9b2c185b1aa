# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Where the settings came from, and whether they were edited since."""

from __future__ import annotations

import os
from typing import Any

from probe.config.settings import PathLike, Settings, load


class ConfigFile:
    """Where settings came from, and whether there are new ones.

    Args:
        config_path: the file, or None.
        **arguments: what was given beside it.
    """

    def __init__(self, config_path: PathLike | None, **arguments: Any) -> None:
        self._path, self._arguments = config_path, arguments
        self._seen = self._stamp()

    def load(self) -> Settings:
        """Return the settings; see ``load``."""
        return load(self._path, **self._arguments)

    def changed(self) -> Settings | None:
        """Return the settings if the file was edited since the last look, else None.

        Raises:
            SettingsError: when what stands in it now is wrong; it is said once.
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

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The settings file of a run, with the arguments that win over it; its edits are noticed."""

from __future__ import annotations

import os
from typing import Any

from probe.config import validators
from probe.config.loading import PathLike, load
from probe.config.settings import Settings


class EditedFile:
    """Notices edits of a file, the first one at once unless it was read already. A path of None has none."""

    def __init__(self, path: str | None, is_read: bool) -> None:
        self.path = path
        self._seen = self._stamp() if is_read else None

    def is_edited(self) -> bool:
        """Return whether the file was edited since the last call."""
        stamp = self._stamp()
        seen = self._seen
        self._seen = stamp or seen
        return stamp not in (None, seen)

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = None if self.path is None else os.stat(self.path)
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


class ConfigFile(EditedFile):
    """A settings file with the arguments that win over it, see ``load``; notices edits.

    A relative path belongs to the folder that is current now. Raise SettingsError when ``config_path`` is no path.
    """

    def __init__(self, config_path: PathLike | None, **arguments: Any) -> None:
        super().__init__(
            None if config_path is None else validators.path("config_path", config_path),
            is_read=True,
        )
        self._arguments = arguments
        self.header: dict[str, Any] = {}  # what the headers of the dump say besides

    def load(self) -> Settings:
        """Return the settings; see ``load``."""
        return load(self.path, **self._arguments)

    def changed(self) -> Settings | None:
        """Return the settings if the file was edited since the last call, else None.

        Raise SettingsError when the edited file is wrong; once per edit.
        """
        return self.load() if self.is_edited() else None

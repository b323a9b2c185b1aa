# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""What went wrong inside the tool: once per kind on the log, and with its traceback in dump_error_info.log."""

from __future__ import annotations

import logging
import os
import traceback

from probe.store import file_io, layout

_log = logging.getLogger("probe")


class ErrorLog:
    """What went wrong in one step. Nothing here ever raises.

    Args:
        folder: the rank folder.
        told: the kinds that were on the log already; the steps of a run share it.
    """

    def __init__(self, folder: str, told: set[tuple[str, str]]) -> None:
        self._folder, self._told = folder, told
        self._known: set[tuple[str, str]] = set()

    def report(self, place: str, error: BaseException, what: str = "") -> None:
        """Report an error, unless one of its kind was: of one place and type, or of the disk with one number.

        Args:
            place: what failed, as a user would say it.
            error: why.
            what: the call that it failed for.
        """
        name = type(error).__name__
        kind = ("files", f"{name} {error.errno}") if isinstance(error, OSError) else (place, name)
        if kind in self._known:
            return
        self._known.add(kind)
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        place = f"{place} ({what})" if what else place
        if kind in self._told:
            self._write_down(f"{place}\n{text}", aloud=False)
            return
        self._told.add(kind)
        _log.error("%s failed, the training goes on, something is missing in the dump: %s: %s", place, name, error)
        self._write_down(f"{place}\n{text}")

    def move(self, folder: str) -> None:
        """Go on in another rank folder."""
        self._folder = folder

    def warn(self, text: str) -> None:
        """Say what the dump will lack from now on, without an error."""
        _log.warning("%s", text)
        self._write_down(text)

    def _write_down(self, text: str, aloud: bool = True) -> None:
        try:
            file_io.make_dirs(self._folder)
            file_io.append(os.path.join(self._folder, layout.ERRORS), f"{text}\n")
        except Exception:
            if aloud:
                _log.error("%s", text)

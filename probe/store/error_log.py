# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Errors of the tool: once per kind on the log, and with their traceback in dump_error_info.log."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable
from typing import Any

from probe.errors import ProbeError
from probe.store import file_io, file_names

_log = logging.getLogger("probe")


class ErrorLog:
    """Reports errors of the tool in one step; never raises. The steps of a run share kinds that were on the log."""

    def __init__(self, folder: str, logged_kinds: set[tuple[str, str]]) -> None:
        self._folder = folder
        self._logged_kinds = logged_kinds
        self._reported: set[tuple[str, str]] = set()

    def report(self, operation: str, error: BaseException, name: str = "") -> None:
        """Report an error once per kind. Kind = (operation, exception type); for OSError its errno.

        The operation is in words of the user; ``name`` is the entry that lacks something.
        """
        error_type = type(error).__name__
        kind = (
            ("files", f"{error_type} {error.errno}")
            if isinstance(error, OSError)
            else (operation, error_type)
        )
        if kind in self._reported:
            return
        self._reported.add(kind)
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        operation = f"{operation} ({name})" if name else operation
        first = kind not in self._logged_kinds
        if first:
            self._logged_kinds.add(kind)
            _log.error(
                "%s failed; the dump is incomplete, training continues. Details: %s: %s: %s",
                *(operation, file_names.ERRORS, error_type, error),
            )
        self._append(f"{operation}\n{trace}", log_failure=first)

    def guard(self, operation: str, name: str = "") -> ErrorGuard:
        """Return a context in which an error ends: it is reported. For the arguments see ``report``."""
        return ErrorGuard(self.report, operation, name)

    def warn(self, text: str) -> None:
        """Log that parts of the dump will be missing from now on, although nothing failed."""
        _log.warning("%s", text)
        self._append(text, log_failure=True)

    def note(self, kind: str, text: str) -> None:
        """Log, once per run and kind, that parts of a dump are missing although nothing failed in the tool."""
        if (kind, "") not in self._logged_kinds:
            self._logged_kinds.add((kind, ""))
            _log.warning("%s", text)

    def _append(self, text: str, log_failure: bool) -> None:
        try:
            file_io.make_dirs(self._folder)
            file_io.append(os.path.join(self._folder, file_names.ERRORS), f"{text}\n")
        except (OSError, ValueError):  # the latter: a text that has no encoding
            if log_failure:
                _log.error("%s", text)


class ErrorGuard:
    """A context in which an error of the tool ends: it is reported. An error that the tool raises on purpose passes.

    ``report`` takes the operation, in words for users, the error and the further arguments. It never raises.
    """

    __slots__ = ("_arguments", "_operation", "_report")

    def __init__(self, report: Callable[..., None], operation: str, *arguments: Any) -> None:
        self._report = report
        self._operation = operation
        self._arguments = arguments

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception) or isinstance(error, ProbeError):
            return False
        self._report(self._operation, error, *self._arguments)
        return True

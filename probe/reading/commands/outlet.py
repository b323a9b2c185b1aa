# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Standard output whose reader may end before the command, as ``head``: the command goes on, to its own exit status."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO


class _Outlet(io.FileIO):
    """A file that drops all bytes after its reader has ended."""

    is_cut = False

    def write(self, content: bytes) -> int:  # type: ignore[override]  # text is bytes by now
        """Write bytes, or drop them."""
        if not self.is_cut:
            try:
                return super().write(content)
            except BrokenPipeError:
                self.is_cut = True
                with open(os.devnull, "wb") as nowhere:
                    os.dup2(nowhere.fileno(), self.fileno())  # also for Python's own last flush
        return len(content)


@contextlib.contextmanager
def lasting_stdout() -> Iterator[None]:
    """Let standard output outlast its reader. One that is replaced already, as by a test, stays."""
    whole = sys.__stdout__
    if whole is None or whole is not sys.stdout:
        yield
        return
    whole.flush()
    made = _outlasting(whole)
    sys.stdout = made
    try:
        yield
    finally:
        sys.stdout = whole
        with contextlib.suppress(OSError, ValueError):
            made.flush()
        with contextlib.suppress(OSError, ValueError):
            made.detach().detach()


def _outlasting(stream: TextIO) -> Any:
    """Return a stream that writes to the same place, also after its reader has ended."""
    buffered: Any = io.BufferedWriter
    raw = _Outlet(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        buffered(raw), stream.encoding, "backslashreplace", line_buffering=stream.isatty()
    )


def is_cut() -> bool:
    """Return whether the reader of standard output has ended."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return isinstance(raw, _Outlet) and raw.is_cut

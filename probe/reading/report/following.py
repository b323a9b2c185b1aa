# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe report --follow``: writes the page again while the training runs."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator

from probe.errors import UsageError
from probe.reading.dumps.run import open as open_run
from probe.reading.report.content import Content
from probe.reading.report.report import Outcome, Wishes, make_content, save
from probe.series.series import find_series

PAUSE = 5  # seconds between two looks; after as many the page reads itself again


def follow(output: str, path: str, wishes: Wishes, tell: Callable[[Outcome], None]) -> Outcome:
    """Write the page whenever the training has written something, until the user interrupts.

    The last page does not renew itself. Raise UsageError when there is nothing to show, or the page cannot be written.

    Args:
        output: the page.
        path: the run.
        wishes: the wishes of the user.
        tell: is called with each outcome.
    """
    content = make_content(path, "", wishes)
    with contextlib.suppress(KeyboardInterrupt):
        tell(save(output, content, wishes.language, PAUSE))
        for content in _contents(path, wishes):
            tell(save(output, content, wishes.language, PAUSE))
    return save(output, content, wishes.language)


def _contents(path: str, wishes: Wishes) -> Iterator[Content]:
    """Yield the content after each change of the run; a run that cannot be read now may be replaced by a new one."""
    before = _written(path)
    while True:
        time.sleep(PAUSE)
        now = _written(path)
        if now != before:
            before = now
            with contextlib.suppress(UsageError):
                yield make_content(path, "", wishes)


def _written(path: str) -> dict[str, tuple[int, int]]:
    """Return the files of the monitor and the folders of the dump with their sizes and times."""
    found: dict[str, tuple[int, int]] = {}
    with contextlib.suppress(OSError, UsageError):
        places = [place for place, _ in find_series(path)]
        places += [folder.path for folder in open_run(path).folders]
        for place in places:
            state = os.stat(place)
            found[place] = state.st_size, state.st_mtime_ns
    return found

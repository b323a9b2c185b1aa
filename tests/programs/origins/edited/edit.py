# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An edit of a program, and the lines at which its answer may stand."""

from __future__ import annotations

from typing import NamedTuple

HARMLESS = "harmless"  # another form of the same
FAULT = "fault"  # alone, or beside another form
WITHOUT_EFFECT = "without effect"  # of the recorded steps


class Edit(NamedTuple):
    """An edit.

    Attributes:
        name: its name.
        kind: HARMLESS, FAULT or WITHOUT_EFFECT.
        changes: the texts that are replaced, each with the new one.
        line: a part of the line at which the fault is found, where that is not the line that was edited.
    """

    name: str
    kind: str
    changes: tuple[tuple[str, str], ...]
    line: str = ""

    def applied(self, text: str) -> str:
        """Return the text of a program after the edit.

        Raises:
            ValueError: when an old text is not there exactly once.
        """
        for old, new in self.changes:
            if text.count(old) != 1:
                raise ValueError(f"{self.name}: {text.count(old)} times in the program: {old}")
            text = text.replace(old, new)
        return text

    def lines(self, text: str) -> set[int]:
        """Return the numbers of the lines of the edited program at which the fault may be found."""
        wanted = [self.line] if self.line else [new for _, new in self.changes]
        parts = [part.strip() for text in wanted for part in text.splitlines()]
        numbered = enumerate(text.splitlines(), 1)
        return {number for number, line in numbered if any(part in line for part in parts)}

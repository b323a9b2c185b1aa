# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The choice of calls, tensors and series by name, as all commands have it: ``--name``, ``--regex``, ``--cell``."""

from __future__ import annotations

import re
from typing import NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import reason_of


class Names(NamedTuple):
    """The names that are asked for; a name has to fit all of them, and "" fits every name."""

    name: str = ""  # a part of the name
    regex: str = ""  # a regular expression that is searched for in the name
    cell: str = ""  # a part of the path of the Cell

    def fits(self, name: str, cell: str = "") -> bool:
        """Return whether a name, in a Cell of this path, is asked for.

        >>> Names("relu").fits("Functional.relu.0.forward"), Names(regex="^Cell").fits("Functional.relu.0.forward")
        (True, False)
        >>> Names(cell="blocks.1").fits("Functional.relu.0.forward", "blocks.1.act")
        True
        """
        is_found = not self.regex or re.search(self.regex, name) is not None
        return self.name in name and is_found and self.cell in cell

    def check(self) -> None:
        """Raise UsageError where the regular expression is none."""
        try:
            re.compile(self.regex)
        except re.error as error:
            raise UsageError(
                say("error.regex", text=self.regex, reason=reason_of(error))
            ) from error


ALL_NAMES = Names()

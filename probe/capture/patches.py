# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Replaces attributes of MindSpore's modules and classes, and puts every one back as it was."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_INHERITED = object()


@dataclass
class Patch:
    """One attribute and what stands in for it.

    Attributes:
        owner: the module or class.
        name: the attribute.
        replacement: what stands there while the patch is installed.
    """

    owner: Any
    name: str
    replacement: Any
    _original: Any = field(default=_INHERITED, repr=False)

    def install(self) -> None:
        """Put the replacement in place."""
        self._original = vars(self.owner).get(self.name, _INHERITED)
        setattr(self.owner, self.name, self.replacement)

    def remove(self) -> None:
        """Put back what was there; leave alone what somebody else has put over the replacement since."""
        if vars(self.owner).get(self.name) is not self.replacement:
            return
        if self._original is _INHERITED:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self._original)
        self._original = _INHERITED


class Patches:
    """A set of patches that are installed and removed together; both may be asked for twice."""

    def __init__(self, patches: list[Patch]) -> None:
        self._patches = patches
        self._installed = False

    def install(self) -> None:
        """Put all replacements in place."""
        if not self._installed:
            self._installed = True
            for patch in self._patches:
                patch.install()

    def remove(self) -> None:
        """Put everything back."""
        if self._installed:
            self._installed = False
            for patch in reversed(self._patches):
                patch.remove()

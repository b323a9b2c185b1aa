# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Hooks that are installed, removed and suspended together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol


class Hooks(Protocol):
    """Hooks in MindSpore or a model. Both methods may be called twice."""

    def install(self) -> None:
        """Install the hooks."""

    def remove(self) -> None:
        """Restore the original state."""


class HookGroup:
    """Installs hooks in their order and removes them in the reverse order.

    Attributes:
        is_suspended: the hooks are removed until ``resume``.
    """

    def __init__(self) -> None:
        self._hooks: list[Hooks] = []
        self._is_installed = False
        self.is_suspended = False

    def add(self, hooks: Hooks) -> None:
        """Add hooks, and install them if the others are."""
        self._hooks.append(hooks)
        if self._is_installed and not self.is_suspended:
            hooks.install()

    def discard(self, hooks: Hooks | None) -> None:
        """Remove hooks and forget them."""
        if hooks is not None and hooks in self._hooks:
            self._hooks.remove(hooks)
            hooks.remove()

    def install(self) -> None:
        """Install all hooks."""
        self._is_installed, self.is_suspended = True, False
        for hooks in self._hooks:
            hooks.install()

    def remove(self) -> None:
        """Remove all hooks."""
        self._is_installed = self.is_suspended = False
        self._remove_all()

    def suspend(self) -> None:
        """Remove the hooks until ``resume``."""
        if self._is_installed:
            self.is_suspended = True
            self._remove_all()

    def resume(self) -> None:
        """Install again the hooks that ``suspend`` removed, unless ``remove`` was called meanwhile."""
        if self.is_suspended:
            self.install()

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Remove the hooks while something is compiled or copied."""
        if not self._is_installed or self.is_suspended:
            yield
            return
        self.suspend()
        try:
            yield
        finally:
            self.resume()

    def _remove_all(self) -> None:
        for hooks in reversed(self._hooks):
            hooks.remove()

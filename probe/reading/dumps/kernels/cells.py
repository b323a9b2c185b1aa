# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""From the scope name of a kernel to the Cell of the model that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping


class CellPaths:
    """The Cells of a model, by the scope names that MindSpore gives their kernels."""

    def __init__(self, classes: Mapping[str, str]) -> None:
        self._classes = dict(classes)  # path of each Cell below the model -> its class: ``{"features.0": "Conv2d"}``
        self._scopes: list[tuple[str, str]] = []
        self._plain: list[tuple[str, str]] = []
        for path in sorted(classes, key=lambda path: (path.count("."), len(path)), reverse=True):
            names = path.split(".")
            above = [".".join(names[: place + 1]) for place in range(len(names))]
            if all(one in classes for one in above):
                parts = [f"{name}-{classes[one]}" for name, one in zip(names, above)]
                self._scopes.append((f"/{'/'.join(parts)}/", path))
                self._plain.append((f"/{'/'.join(names)}/", path))

    def entry(self, scope: str) -> str | None:
        """Return the entry name of the Cell in which a kernel runs; None where the scope names none of the model.

        Args:
            scope: the kernel's name with its scope, separated by "/"; whole graphs on Ascend separate by "_".

        >>> cells = CellPaths({"features": "SequentialCell", "features.0": "Conv2d"})
        >>> cells.entry("Default/network-Net/features-SequentialCell/0-Conv2d/Conv2D-op3")
        'Cell.features.0.Conv2d.forward.0'
        >>> cells.entry("Default_network-Net_features-SequentialCell_0-Conv2d_Conv2D-op3")
        'Cell.features.0.Conv2d.forward.0'
        >>> cells.entry("Default/Add-op1") is None
        True
        """
        above, separator, _ = scope.rpartition("/")
        if not separator:
            return self._of_joined(scope)
        text = f"/{above}/"
        for known in (self._scopes, self._plain):  # scopes have no classes where reserve_class_name_in_scope is off
            for part, path in known:
                if part in text:
                    return self.name(path)
        return None

    def _of_joined(self, scope: str) -> str | None:
        text = f"_{scope}"
        for part, path in self._scopes:
            if part.replace("/", "_") in text:
                return self.name(path)
        return None

    def name(self, path: str) -> str:
        """Return the entry name of the Cell at a path."""
        return f"Cell.{path}.{self._classes[path]}.forward.0"

    def construct(self, entries: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return the parents of entries and of the Cells that they name, up to the outermost Cell."""
        found: dict[str, str | None] = dict(entries)
        for path in self._classes:
            above = path.rpartition(".")[0]
            found[self.name(path)] = self.name(above) if above in self._classes else None
        return found

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""MindSpore's own layer: Cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from probe.layers.layer import Layer
from probe.naming import CELL


class CellLayer(Layer):
    """The layer of ``mindspore.nn``."""

    framework = "mindspore"
    prefix = CELL
    allowed = "a mindspore.nn.Cell, or a list or tuple of Cells"
    hook_methods = ("_run_forward_pre_hook", "_run_forward_hook")

    def __init__(self) -> None:
        from mindspore import nn

        self.kind = nn.Cell

    def modules(self, module: Any) -> Iterator[tuple[str, Any]]:
        """See ``Layer``."""
        found: Iterator[tuple[str, Any]] = module.cells_and_names()
        return found

    def parameters(self, module: Any) -> Mapping[str, Any]:
        """See ``Layer``. One whose class has not called the base's ``__init__`` has none."""
        return vars(module).get("_params") or {}

    def parameter_name(self, parameter: Any, path: str, key: str) -> str:
        """See ``Layer``. A parameter has a name of its own; a tensor that stands for one has none."""
        return str(getattr(parameter, "name", None) or key)

    def has_pre_hooks(self, module: Any) -> bool:
        """See ``Layer``. A patch of the method that runs them has their results: see ``CellHooks``."""
        return bool(module._forward_pre_hook)

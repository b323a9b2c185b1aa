# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The selection of a capture backend, and the checks before it records."""

from __future__ import annotations

import logging
import os
from typing import Any, Union

from probe.capture.graph.compiled_graphs import (
    TASKS,
    CompiledGraphs,
    check_cells,
    check_graph_settings,
    is_supported,
)
from probe.capture.pynative.cells import iter_cells, named_cells
from probe.capture.pynative.pynative_capture import PyNativeCapture
from probe.capture.support_ops import SupportedApi
from probe.config.settings import Settings
from probe.naming import BACKWARD

_log = logging.getLogger("probe")
_OTHER_BITS = (
    "compiled graphs report their tensors with nodes of their own. MindSpore may then compute some sums in another "
    'order, so last bits can change. "data_mode": ["forward"] adds fewer nodes'
)


CaptureBackend = Union[PyNativeCapture, CompiledGraphs]  # a way to see a training


class Backends:
    """Makes the capture backend of a session. The compiled graphs of the session before still report."""

    def __init__(self, before: Backends | None, continues: bool) -> None:
        #: the backend of the settings in force, or None until a step is recorded
        self.current: CaptureBackend | None = None
        self._has_compiled_cells = False
        self._prepared = None
        self._graphs: CompiledGraphs | None = None if before is None else before._graphs
        self._custom: dict[tuple[int, str], SupportedApi] = (
            dict(before._custom) if before and continues else {}
        )

    def add(self, api: SupportedApi) -> None:
        """Record a function of the user's own too."""
        self._custom[id(api.owner), api.name] = api
        if self.current is not None:
            self.current.drop(api.owner, api.name)
            self.current.add(api)

    def drop(self, owner: Any, name: str) -> bool:
        """Stop recording such a function; return whether it was recorded."""
        if self.current is not None:
            self.current.drop(owner, name)
        return self._custom.pop((id(owner), name), None) is not None

    def prepare(self, settings: Settings, models: Any, token_range: Any) -> None:
        """Watch what MindSpore compiles, from the first start on: later it cannot be changed. May raise UsageError."""
        is_graph = is_graph_mode()
        if is_graph:
            check_graph_settings(settings, token_range)
        elif not settings.cells or settings.task not in TASKS or not is_supported():
            return
        if models is self._prepared:
            return
        found = list(iter_cells(models))
        if not is_graph and not any(is_jit(cell) for _, cell in found):
            self._prepared = models
            return
        cells = named_cells(models, found)
        watches = BACKWARD in settings.data_mode
        if self._graphs is None or not self._graphs.serves(not is_graph, watches):
            self._graphs = CompiledGraphs(not is_graph, settings.dump_path, watches)
        if is_graph:
            check_cells(found, is_watched=bool(cells) and self._graphs.knows(cells[0][1]))
        if not self._has_compiled_cells:
            _log.warning(_OTHER_BITS)
        self._has_compiled_cells = True
        self._graphs.watch_cells(cells)
        self._prepared = models

    def select(self, settings: Settings) -> CaptureBackend:
        """Return the backend for these settings; raise UsageError for level "debug" in GRAPH_MODE."""
        if self.current is None:
            if not is_graph_mode():
                self.current = PyNativeCapture(
                    settings, self._graphs if self._has_compiled_cells else None
                )
            else:
                check_graph_settings(settings, None)
                self._graphs = self._graphs or CompiledGraphs(
                    False, settings.dump_path, BACKWARD in settings.data_mode
                )
                self.current = self._graphs
            for api in self._custom.values():
                self.current.add(api)
        return self.current

    def close(self) -> None:
        """Watch nothing more."""
        self.current = self._prepared = None
        if self._graphs is not None:
            self._graphs.close()


def is_graph_mode() -> bool:
    """Return whether Cells are compiled when they are called."""
    import mindspore
    from mindspore import context

    # the private function is thirty times faster
    mode = context._get_mode() if hasattr(context, "_get_mode") else mindspore.get_context("mode")
    return bool(mode != mindspore.PYNATIVE_MODE and os.environ.get("MS_JIT") != "0")


def is_jit(cell: Any) -> bool:
    """Return whether a Cell's construct is compiled from its source in PyNative mode."""
    construct = getattr(cell, "construct", None)  # modules of other layers have none
    function = getattr(construct, "__func__", construct)
    code = getattr(function, "__code__", None)
    return (
        os.environ.get("MS_JIT") != "0"
        and code is not None
        and code.co_name == "staging_specialize"
    )

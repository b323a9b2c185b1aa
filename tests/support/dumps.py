# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A dump as a user finds it on disk, and debuggers that write one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np


class Dump:
    """One rank folder, read back."""

    def __init__(self, folder):
        self.folder = Path(folder)
        document = json.loads((self.folder / "dump.json").read_text())
        self.header = {key: value for key, value in document.items() if key != "data"}
        self.data = document["data"]
        self.stack = self._optional("stack.json")
        self.construct = self._optional("construct.json")

    def _optional(self, name):
        path = self.folder / name
        return json.loads(path.read_text()) if path.exists() else None

    def array(self, data_name):
        return np.load(self.folder / "dump_tensor_data" / data_name, allow_pickle=False)

    def names(self, *parts):
        return [name for name in self.data if all(part in name for part in parts)]


class Debug:
    """Makes debuggers that write below one folder and reads what they wrote."""

    def __init__(self, tmp_path):
        self.path = tmp_path
        self.dump_path = tmp_path / "dump"

    def __call__(self, **settings):
        from probe import PrecisionDebugger

        task = settings.get("task", "statistics")
        own = {
            key: settings.pop(key)
            for key in (
                "scope",
                "list",
                "exclude",
                "tensor_list",
                "data_mode",
                "summary_mode",
                "last_calls",
                "on_nan",
                "max_hits",
                "when",
                "slice",
                "sample_mode",
                "sample_num",
                "rolling",
            )
            if key in settings
        }
        settings.setdefault("dump_path", str(self.dump_path))
        config = self.path / "config.json"
        config.write_text(json.dumps({**settings, task: own}))
        return PrecisionDebugger(config_path=str(config))

    def dump(self, step=0, rank=""):
        return Dump(self.dump_path / f"step{step}" / f"rank{rank}")

    def record(self, function, model=None, **settings):
        """Run a function once under a debugger and return (its result, the dump)."""
        debugger = self(**settings)
        debugger.start(model)
        result = function()
        debugger.stop()
        debugger.step()
        return result, self.dump()

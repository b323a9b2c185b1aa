# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trains with each transform of MindSpore at each level and in each task, and compares all bits with a bare training.

    python -m tests.programs.transforms FOLDER [--settings L0,monitor] [--names jvp,vmap]

One process runs all that is named, with PyNative as users have it: asynchronous. ``make transforms`` runs all.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from probe import PrecisionDebugger
from probe.launch.program import show_runpy
from tests.support.transforms import NAMES, train

#: setting -> what its config.json says
SETTINGS = {
    "L0": {"level": "L0"},
    "L1": {"level": "L1"},
    "mix": {"level": "mix"},
    "nan_check": {"level": "mix", "task": "nan_check"},
    "monitor": {"level": "L1", "task": "monitor"},
    "tensor": {"level": "mix", "task": "tensor"},
    "guard": {"level": "mix", "saved_tensors": True},
    "debug": {"level": "debug"},
    "golden": {"level": "mix"},
}


def results(name: str, setting: str, folder: Path) -> list:
    """Return the bytes of a training with probe. A golden run compares with a dump of the same training."""
    settings: dict[str, object] = dict(SETTINGS[setting])
    if setting == "golden":
        settings["golden"] = str(folder / "recorded")
        train(name, PrecisionDebugger(level="mix", dump_path=str(folder / "recorded")))
    config = folder / "config.json"
    folder.mkdir(parents=True, exist_ok=True)
    config.write_text(json.dumps({"dump_path": str(folder / "dump"), **settings}), encoding="utf-8")
    return train(name, PrecisionDebugger(config_path=str(config)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--names", default=",".join(NAMES))
    arguments = parser.parse_args()
    different = compared = 0
    show_runpy()
    for name in arguments.names.split(","):
        if name == "jit_of_bytecode" and sys.version_info >= (3, 12):
            continue  # MindSpore's bytecode capture does not support Python 3.12
        bare = train(name)
        for setting in arguments.settings.split(","):
            folder = arguments.folder / f"{name}-{setting}"
            is_equal = results(name, setting, folder) == bare
            if not is_equal or list(folder.rglob("dump_error_info.log")):
                print(
                    f"{name} at {setting}: {'an error of probe' if is_equal else 'other bits'}",
                    flush=True,
                )
                different += 1
            shutil.rmtree(folder, ignore_errors=True)
            compared += 1
    print(f"{compared} trainings compared, {different or 'none'} different", flush=True)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

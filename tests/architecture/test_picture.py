# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The picture of the rooms in docs/how-it-works.md shows the imports of the code."""

from __future__ import annotations

import re

from tests.architecture.source import read
from tests.support.paths import ROOT

#: every room may import these; the picture leaves them out
GROUND = {
    "config",
    "door",
    "process",
    "entry",
    "pytree",
    "naming",
    "parameter_names",
    "errors",
    "executor",
    "findings",
    "layers",
    "living",
    "private_names",
    "options",
    "signatures",
}


def _room(module: str) -> str:
    return module.split(".")[1].strip("_") if "." in module else ""


def test_the_arrows_are_the_imports_between_rooms():
    modules = read(ROOT)
    names = frozenset(module.name for module in modules)
    imports = {
        (_room(module.name), _room(name)) for module in modules for name in module.imports(names)
    }
    imports = {(a, b) for a, b in imports if a and b and a != b and not {a, b} & GROUND}
    text = (ROOT / "docs" / "how-it-works.md").read_text("utf-8")
    picture = re.findall(r"^ +(\w+)(?:\[.*?\])? --> (\w+)$", text, re.MULTILINE)
    assert sorted(picture) == sorted(imports)


def test_the_room_table_names_files_that_exist():
    text = (ROOT / "docs" / "how-it-works.md").read_text("utf-8")
    named = set(re.findall(r"`([\w/]+\.py)`", text))
    modules = {module.path.removeprefix("probe/") for module in read(ROOT)}
    files = {path.rsplit("/", 1)[-1] for path in modules}
    missing = {
        name
        for name in named
        if not (ROOT / name).exists()
        and name.removeprefix("probe/") not in modules
        and name not in files
    }
    assert named
    assert not missing

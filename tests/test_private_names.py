# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The table of MindSpore's private names is complete, and tells a name that is gone."""

from __future__ import annotations

import ast
import re

from mindspore.communication import GlobalComm

from probe.private_names import PRIVATE_PARTS, missing_names
from tests.support.paths import ROOT

#: the words of all names in the table
LISTED = {
    word for part in PRIVATE_PARTS for name in part.names for word in re.findall(r"\w+", name)
}
#: private names of Python and of probe itself that objects of others have
OTHERS = {"_getframe", "_fields", "_field_defaults", "_replace", "_asdict", "_exit", "_actions", "_run_module_as_main",
          "_option_string_actions", "_subparsers", "_SubParsersAction", "_initializing"}  # fmt: skip
#: and those that distributed tensors have, where there are any
OTHERS |= {"_local_tensor", "_device_mesh", "_placements"}
#: and those of torch's modules
OTHERS |= {"_forward_pre_hooks", "_global_forward_pre_hooks"}


def private_names():
    """Return the private names that probe reads of anything but itself, and the places."""
    own, used = set(), {}
    for path in (ROOT / "probe").rglob("*.py"):
        if {"reading", "series", "doctor"} & set(path.relative_to(ROOT).parts):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                own.add(node.name)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                own.add(node.target.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                own.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own.add(node.id)
            if isinstance(node, ast.Constant) and re.fullmatch(r"_[a-zA-Z]\w+", str(node.value)):
                used.setdefault(node.value, set()).add(path.name)  # for getattr, or for a patch
            if isinstance(node, ast.Attribute) and re.match(r"_[a-zA-Z]", node.attr):
                used.setdefault(node.attr, set()).add(path.name)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mindspore"):
                is_private = "._" in node.module
                names = [
                    name.name for name in node.names if is_private or name.name.startswith("_")
                ]
                for name in names:
                    used.setdefault(name, set()).add(path.name)
    return {name: places for name, places in used.items() if name not in own | OTHERS}


def test_every_private_name_in_the_code_is_in_the_table():
    found = private_names()
    assert {"_grad_node", "_data_ptr", "MixedPrecisionType", "_Function", "_params"} <= set(found)
    assert {name: places for name, places in found.items() if name not in LISTED} == {}


def test_this_mindspore_has_all_names():
    assert list(missing_names()) == []


def test_a_name_that_is_gone_is_told_with_the_loss(monkeypatch):
    monkeypatch.delattr(GlobalComm, "WORLD_COMM_GROUP")
    ((part, name),) = missing_names()
    assert (part.part, name) == (
        "communication",
        "mindspore.communication:GlobalComm.WORLD_COMM_GROUP",
    )
    assert part.loss.startswith("collectives have no group")

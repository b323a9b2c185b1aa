# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Writes a stand-alone program that makes one call again: for a bug report. It needs MindSpore and numpy alone."""

from __future__ import annotations

import ast
import json
import os
import pprint
from pathlib import Path

import numpy as np

from probe.errors import UsageError
from probe.findings.sentence import say, table
from probe.findings.system import reason_of
from probe.reading.dumps.dump import Call
from probe.reading.dumps.tables import create
from probe.replaying.calling import tensors_of
from probe.replaying.described import CallDescription, CannotReplayError
from probe.replaying.describing import describe
from probe.replaying.functions import OPERATORS, find
from probe.replaying.worker import load

#: the modules below probe/ whose text a script holds, in this order
_MODULES = (
    "measure/dtype_name",
    "replaying/judging",
    "replaying/described",
    "replaying/exact_gradients",
    "replaying/exact",
    "replaying/calling",
    "replaying/references",
    "replaying/making",
    "replaying/evaluating",
)
_LICENSE = "# Copyright 2026 the probe developers\n# SPDX-License-Identifier: Apache-2.0\n"


def write_script(call: Call, path: str, dtype: str = "") -> list[str]:
    """Write the program of one call, and its arrays beside it; return the paths.

    The dtype "" stands for the recorded ones. Raise UsageError when the call cannot be made again, or a file cannot be
    written.
    """
    try:
        description = describe(call)
        found = find(description)
        description = description._replace(args=description.args[: found.inputs])
        folder = f"{Path(path).stem}_arrays"
        place = os.path.join(os.path.dirname(os.path.abspath(path)), folder)
        os.makedirs(place, 0o750, exist_ok=True)
        _save_arrays(description, place)
        with create(path) as file:
            file.write(_text(call.name, found.code, description, folder, dtype))
    except CannotReplayError as error:
        raise UsageError(
            say("error.replay_no_script", name=call.name, reason=error.reason)
        ) from error
    except OSError as error:
        raise UsageError(say("error.replay_script_unwritten", reason=reason_of(error))) from error
    return [path, place]


def _save_arrays(description: CallDescription, place: str) -> None:
    """Save the arrays of a call, and put their names into its description."""
    leaves = tensors_of(description)
    leaves += [
        leaf
        for leaf in (*(description.sens or ()), *description.expected)
        if leaf and leaf["array"]
    ]
    for number, leaf in enumerate(leaves):
        array = load(leaf)
        leaf["array"] = f"{number}.npy"
        np.save(os.path.join(place, leaf["array"]), array, allow_pickle=False)


def _text(name: str, code: str, description: CallDescription, folder: str, dtype: str) -> str:
    """Return the program. Names and values of the dump stand in literals of Python alone."""
    shown = "".join(
        letter if letter.isalnum() or letter in "._:-" else "_"
        for letter in name
        if letter.isascii()
    )
    here = Path(__file__).parent
    texts = ((here.parent / f"{module}.py").read_text("utf-8") for module in _MODULES)
    body = "".join(map(_without_head, texts))
    forms = {key: english for key, (english, _) in table().items() if f'"{key}"' in body}
    return (
        (here / "script.template")
        .read_text("utf-8")
        .format(
            license=_LICENSE,
            name=shown,
            folder=ascii(folder)[1:-1].replace('"', "_"),
            code=code,
            call=ascii(json.dumps(description._asdict())),
            folder_text=ascii(folder),
            forms=pprint.pformat(forms, width=118),
            modules=body,
            dtype=ascii(dtype),
            operators=ascii(
                json.dumps(
                    {
                        kind: sorted(names)
                        for kind, names in OPERATORS.items()
                        if f'"{kind}"' in body
                    }
                )
            ),
        )
    )


def _without_head(text: str) -> str:
    """Return the text of a module without its license, its docstring and the imports of its neighbours."""
    lines = text.splitlines()
    for node in reversed(ast.parse(text).body):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_docstring or _is_of_neighbour(node):
            del lines[node.lineno - 1 : node.end_lineno]
    body = "\n".join(line for line in lines if not line.startswith("# Copyright"))
    return "\n\n" + body.strip("\n") + "\n"


def _is_of_neighbour(node: ast.stmt) -> bool:
    """Return whether a statement imports from probe, or changes how annotations are read."""
    if not isinstance(node, ast.ImportFrom) or node.module is None:
        return False
    return node.module == "__future__" or node.module.split(".")[0] == "probe"

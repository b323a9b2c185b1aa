# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Records each program as it is and with each edit, and looks at each line of the answer of `probe compare`.

    python -m tests.programs.origins.edited.trial [--mode statistics|md5|tensor] [--only WORD] [--keep FOLDER]

A fault is named if it is the one finding, and stands at a line that was edited. A harmless edit, and one without an
effect, has no finding. Both orders must have one status. A line of JSON for each edit.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import mindspore as ms
import numpy as np

import probe
from tests.programs.origins.edited import (
    edits_of_contrast,
    edits_of_rays,
    edits_of_rotary,
    edits_of_states,
    edits_of_vision,
    edits_of_waves,
)
from tests.programs.origins.edited.edit import FAULT, Edit

STEPS = 2
#: so many answers may be wrong
_ALLOWED = 6
PROGRAMS = Path(__file__).with_name("programs")
EDITS: dict[str, Sequence[Edit]] = {
    "vision": edits_of_vision.EDITS,
    "waves": edits_of_waves.EDITS,
    "rays": edits_of_rays.EDITS,
    "states": edits_of_states.EDITS,
    "rotary": edits_of_rotary.EDITS,
    "contrast": edits_of_contrast.EDITS,
}
_SETTINGS: dict[str, dict[str, Any]] = {
    "statistics": {"task": "statistics"},
    "md5": {"task": "statistics", "statistics": {"summary_mode": "md5"}},
    "tensor": {"task": "tensor"},
}


def record(program: Path, folder: Path, mode: str) -> None:
    """Record the steps of a program."""
    module = _imported(program)
    ms.set_seed(1)
    net = module.Net()
    _fill(net)
    net.set_train()
    optimizer = module.optimizer(net)
    settings = {"level": "mix", "dump_path": str(folder), **_SETTINGS[mode]}
    config = folder.parent / "config.json"
    config.write_text(json.dumps(settings), encoding="utf-8")
    debugger = probe.PrecisionDebugger(config_path=str(config))
    gradient = ms.value_and_grad(
        lambda *batch: module.loss(net, *batch), None, optimizer.parameters
    )
    for step in range(STEPS):
        batch = module.batch(np.random.RandomState(100 + step))
        debugger.start(net)
        _, gradients = gradient(*batch)
        if hasattr(module, "grads"):
            gradients = module.grads(gradients)
        optimizer(gradients)
        debugger.stop()
        debugger.step()
    debugger.close()


def _imported(program: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(program.stem.replace(" ", "_"), program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _fill(net: ms.nn.Cell) -> None:
    """Give the parameters values that tell them apart, the same in each run."""
    random = np.random.RandomState(0)
    for parameter in net.get_parameters():
        array = random.randn(*parameter.shape)
        if parameter.name.endswith("gamma"):
            array = 1 + 0.1 * array
        elif parameter.name.endswith(("beta", "bias")):
            array = 0.1 * array
        else:
            array = 0.3 * array
        parameter.set_data(ms.Tensor(array.astype(np.float32)))


def judge(edit: Edit, lines: set[int], found: Any, back: Any) -> dict[str, Any]:
    """Return the answer about an edit, and whether it is right."""
    origins = found.to_dict()["origins"]
    status = [found.status, back.status]
    if edit.kind == FAULT:
        is_one = len(origins) == len(back.to_dict()["origins"]) == 1
        is_right = status == [1, 1] and is_one and origins[0]["line"] in lines
    else:
        is_right = status == [0, 0]
    return {
        "right": is_right,
        "kind": edit.kind,
        "status": status,
        "expected": sorted(lines),
        "lines": [item["line"] for item in origins],
        "said": [item["sentence"] for item in origins],
        "text": str(found),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", default="statistics", choices=_SETTINGS)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    wrong: list[str] = []
    total = 0
    with tempfile.TemporaryDirectory() as made:
        for name, edits in EDITS.items():
            text = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
            folder = (arguments.keep or Path(made)) / name
            folder.mkdir(parents=True, exist_ok=True)
            golden = _run(folder, "golden", text, arguments.mode)
            for edit in edits:
                if arguments.only not in f"{name}: {edit.name}":
                    continue
                edited = edit.applied(text)
                run = _run(folder, edit.name, edited, arguments.mode)
                found, back = probe.compare(golden, run), probe.compare(run, golden)
                row = judge(edit, edit.lines(edited), found, back)
                total += 1
                if not row["right"]:
                    wrong.append(f"{name}: {edit.name}")
                print(json.dumps({"program": name, "edit": edit.name, **row}), flush=True)
    print(json.dumps({"mode": arguments.mode, "edits": total, "wrong": wrong}))
    return int(len(wrong) > _ALLOWED)


def _run(folder: Path, name: str, text: str, mode: str) -> Path:
    """Write a program into a folder and record it; return the folder of the dump."""
    program = folder / f"{name}.py"
    program.write_text(text, encoding="utf-8")
    record(program, folder / name, mode)
    return folder / name


if __name__ == "__main__":
    sys.exit(main())

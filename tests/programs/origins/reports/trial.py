# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Records each training as it is and with each fault, and looks at each line of the answer of `probe compare`.

    python -m tests.programs.origins.reports.trial [--mode statistics|md5|tensor] [--only WORD] [--keep FOLDER]

A fault is named if the first finding stands at its line of the program. No other finding may stand beside it, and both
orders must have one status. A line of JSON for each fault.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ops

import probe
from tests.programs.origins.reports import nets
from tests.programs.origins.reports.fault import Fault

STEPS = 2
#: so many answers may be wrong
_ALLOWED = 3
_NAMES = re.compile(r'bad(?:\.either)?\(\s*"([^"]+)"')


def faults(training: Any) -> dict[str, set[int]]:
    """Return the faults of a training, each with the lines of the statements that have its name.

    A comment has it where the value that is changed is used.
    """
    statements = _statements()
    found: dict[str, set[int]] = {}
    for part in (training, *_classes(training)):
        lines, first = inspect.getsourcelines(part)
        for number, text in enumerate(lines, first):
            names = _NAMES.findall(text)
            if "  # " in text:
                names.append(text.rpartition("  # ")[2].strip())
            for name in names:
                found.setdefault(name, set()).update(statements[number])
    return found


def _statements() -> dict[int, range]:
    """Return for each line of the trainings the lines of the innermost statement around it."""
    found: dict[int, range] = {}
    for node in ast.walk(ast.parse(inspect.getsource(nets))):  # outer statements come first
        if isinstance(node, ast.stmt) and node.end_lineno is not None:
            lines = range(node.lineno, node.end_lineno + 1)
            found.update(dict.fromkeys(lines, lines))
    return found


def _classes(training: Any) -> Iterator[type]:
    """Yield the class of the model that a training makes."""
    for name in training.__code__.co_names:
        made = getattr(nets, name, None)
        if isinstance(made, type) and issubclass(made, ms.nn.Cell):
            yield made


def record(training: Any, fault: str, folder: Path, mode: str) -> None:
    """Record a training with a fault, or as it is."""
    ms.set_seed(1)
    np.random.seed(1)
    made = training(Fault(fault))
    made.model.set_train()
    settings: dict[str, Any] = {"level": "mix", "task": "statistics", "dump_path": str(folder)}
    if mode == "tensor":
        settings["task"] = "tensor"
    elif mode == "md5":
        settings["statistics"] = {"summary_mode": "md5"}
    folder.parent.mkdir(parents=True, exist_ok=True)
    config = folder.parent / "config.json"
    config.write_text(json.dumps(settings), encoding="utf-8")
    debugger = probe.PrecisionDebugger(config_path=str(config))
    gradient = ms.value_and_grad(made.loss_of, None, made.optimizer.parameters)
    for step in range(STEPS):
        batch = made.batch(step)
        debugger.start(made.model)
        _, gradients = gradient(*batch)
        if made.clip:
            gradients = ops.clip_by_global_norm(gradients, made.clip)
        made.optimizer(gradients)
        debugger.stop()
        debugger.step()
    debugger.close()


def judge(name: str, lines: set[int], found: Any, back: Any) -> dict[str, Any]:
    """Return the answer about a change at some lines, and whether it is right.

    A change of the form is right with status 0. Of a fault each finding has to stand at these lines, or be the
    optimizer's: a second finding elsewhere would be a false sentence.
    """
    origins = found.to_dict()["origins"]
    status = [found.status, back.status]
    places = [item["line"] in lines or item["kind"] == "optimizer" for item in origins]
    is_harmless = name in nets.HARMLESS
    is_right = status == [0, 0] if is_harmless else status == [1, 1] and all(places)
    return {
        "right": is_right,
        "harmless": is_harmless,
        "status": status,
        "expected": sorted(lines),
        "lines": [item["line"] for item in origins],
        "kinds": [item["kind"] for item in origins],
        "said": [item["sentence"] for item in origins],
        "text": str(found),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", default="statistics", choices=("statistics", "md5", "tensor"))
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    wrong: list[str] = []
    total = 0
    with tempfile.TemporaryDirectory() as made:
        root = arguments.keep or Path(made)
        for training in nets.TRAININGS:
            name = training.__name__
            golden = root / name / "golden"
            record(training, "", golden, arguments.mode)
            for fault, lines in faults(training).items():
                if arguments.only not in f"{name}: {fault}":
                    continue
                folder = root / name / fault.replace(" ", "_")
                record(training, fault, folder, arguments.mode)
                row = judge(
                    fault, lines, probe.compare(golden, folder), probe.compare(folder, golden)
                )
                total += 1
                if not row["right"]:
                    wrong.append(f"{name}: {fault}")
                print(json.dumps({"training": name, "change": fault, **row}), flush=True)
    print(json.dumps({"mode": arguments.mode, "changes": total, "wrong": wrong}))
    return int(len(wrong) > _ALLOWED)


if __name__ == "__main__":
    sys.exit(main())

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Records each training as it is and with each fault, and looks at each line of the answer of `probe compare`.

    python -m tests.programs.origins.reports.trial [--mode statistics|md5|tensor] [--only WORD] [--keep FOLDER]
        [--nets nets|later_nets]

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
from tests.programs.origins.reports import later_nets, nets
from tests.programs.origins.reports.fault import Fault

STEPS = 2
#: so many answers may be wrong
_ALLOWED = 3
MODULES = {"nets": nets, "later_nets": later_nets}
_NAMES = re.compile(r'bad(?:\.either)?\(\s*"([^"]+)"')


def faults(training: Any) -> dict[str, set[int]]:
    """Return the faults of a training, each with the lines of the statements that have its name.

    A comment has it where the value that is changed is used.
    """
    statements = _statements(inspect.getmodule(training))
    found: dict[str, set[int]] = {}
    for part in (training, *_classes(training)):
        lines, first = inspect.getsourcelines(part)
        for number, text in enumerate(lines, first):
            names = _NAMES.findall(text)
            if "  # " in text:
                names += text.rpartition("  # ")[2].strip().split(", ")
            for name in names:
                found.setdefault(name, set()).update(statements[number])
    return found


def _statements(module: Any) -> dict[int, range]:
    """Return for each line of the trainings the lines of the innermost statement around it."""
    found: dict[int, range] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):  # outer statements come first
        if isinstance(node, ast.stmt) and node.end_lineno is not None:
            lines = range(node.lineno, node.end_lineno + 1)
            found.update(dict.fromkeys(lines, lines))
    return found


def _classes(training: Any) -> Iterator[type]:
    """Yield the class of the model that a training makes."""
    for name in training.__code__.co_names:
        made = getattr(inspect.getmodule(training), name, None)
        if isinstance(made, type) and issubclass(made, ms.nn.Cell):
            yield made


def record(training: Any, names: tuple[str, ...], folder: Path, mode: str) -> None:
    """Record a training with faults, or as it is."""
    ms.set_seed(1)
    np.random.seed(1)
    made = training(Fault(names))
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
        found, gradients = gradient(*batch)
        if made.clip:
            gradients = ops.clip_by_global_norm(gradients, made.clip)
        made.optimizer(gradients)
        if made.after is not None:
            made.after(*found[1:])
        debugger.stop()
        debugger.step()
    debugger.close()


def judge(
    names: tuple[str, ...], lines: set[int], found: Any, back: Any, module: Any
) -> dict[str, Any]:
    """Return the answer about changes at some lines, and whether it is right.

    A change of the form is right with status 0. Of a fault each finding has to stand at these lines or below a call
    of them, or be the optimizer's: a second finding elsewhere would be a false sentence. Statistics cannot know an
    order of elements, and say so.
    """
    origins = found.to_dict()["origins"]
    status = [found.status, back.status]
    places = [
        item["kind"] in ("optimizer", *(module.OUTSIDE.get(name) for name in names))
        or "summary_mode md5" in item["sentence"]
        or any(
            f"{module.__name__.rpartition('.')[2]}.py, line {line}," in frame
            for line in lines
            for frame in item["stack"]
        )
        for item in origins
    ]
    is_harmless = all(name in module.HARMLESS for name in names)
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


def changes(training: Any, module: Any) -> dict[tuple[str, ...], set[int]]:
    """Return the changes of a training, with the lines of the fault; of a hidden fault not those of the form."""
    single = faults(training)
    found = {(name,): lines for name, lines in single.items()}
    hidden = {pair: single[pair[-1]] for pair in module.HIDDEN if set(pair) <= set(single)}
    return {**found, **hidden}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", default="statistics", choices=("statistics", "md5", "tensor"))
    parser.add_argument("--only", default="")
    parser.add_argument("--nets", default="nets", choices=MODULES)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    wrong: list[str] = []
    total = 0
    with tempfile.TemporaryDirectory() as made:
        root = arguments.keep or Path(made)
        module = MODULES[arguments.nets]
        for training in module.TRAININGS:
            name = training.__name__
            golden = root / name / "golden"
            wanted = {
                names: lines
                for names, lines in changes(training, module).items()
                if arguments.only in f"{name}: {' + '.join(names)}"
            }
            if wanted:
                record(training, (), golden, arguments.mode)
            for names, lines in wanted.items():
                fault = " + ".join(names)
                folder = root / name / fault.replace(" ", "_")
                record(training, names, folder, arguments.mode)
                found, back = probe.compare(golden, folder), probe.compare(folder, golden)
                row = judge(names, lines, found, back, module)
                total += 1
                if not row["right"]:
                    wrong.append(f"{name}: {fault}")
                print(json.dumps({"training": name, "change": fault, **row}), flush=True)
    print(json.dumps({"mode": arguments.mode, "changes": total, "wrong": wrong}))
    return int(len(wrong) > _ALLOWED)


if __name__ == "__main__":
    sys.exit(main())

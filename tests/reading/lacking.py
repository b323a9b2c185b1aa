# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Folders of a healthy training that lack something: a file, a rank, a step, gradients, numbers, a task."""

from __future__ import annotations

import json
import shutil

from probe.series.file import SeriesFile
from tests.reading.one_run.test_health import Training

STEPS = 3


def healthy(folder):
    """Write a healthy run of two ranks, of which each names the size of the world."""
    for rank in range(2):
        training = Training(STEPS)
        training.run["rank"] = rank
        training.lines = [{"step": step, "inputs": [], "parameters": {}} for step in range(STEPS)]
        whole = folder.parent / f"{folder.name}-{rank}"
        training.write(whole)
        for step in range(STEPS):
            place = folder / f"step{step}" / f"rank{rank}"
            shutil.copytree(whole / f"step{step}" / "rank", place)
        shutil.rmtree(whole)
    for path in documents(folder):
        change(path, lambda document: document.update(run={"world_size": 2}))
    for path in documents(folder, rank="1"):
        change(path, _with_another_batch)
    return folder


def _with_another_batch(document):
    """Let the first input of the calls be the batch of another rank."""
    for name in ("Functional.matmul.0.forward", "Cell.fc.Dense.forward.0"):
        batch = document["data"][name]["input_args"][0]
        batch.update({key: batch[key] * 1.01 for key in NUMBERS})


def documents(folder, step="*", rank="*"):
    """Return the documents of some steps and ranks."""
    return sorted(folder.glob(f"step{step}/rank{rank}/dump.json"))


def change(path, how):
    """Change a document on disk."""
    document = json.loads(path.read_text())
    how(document)
    path.write_text(json.dumps(document))


def without_entries(*words):
    """Return a change: entries whose name has one of these words go."""

    def lack(folder):
        for path in documents(folder):
            change(
                path,
                lambda it: [
                    it["data"].pop(name) for name in [*it["data"]] if any(w in name for w in words)
                ],
            )

    return lack


def without_keys(*keys, only="", steps="*", ranks="*"):
    """Return a change: records lose these keys, in entries whose name has ``only``."""

    def strip(value):
        if isinstance(value, dict):
            for key in keys:
                if "dtype" in value:
                    value.pop(key, None)
            for item in value.values():
                strip(item)
        elif isinstance(value, list):
            for item in value:
                strip(item)

    def lack(folder):
        for path in documents(folder, steps, ranks):
            change(
                path,
                lambda it: [strip(entry) for name, entry in it["data"].items() if only in name],
            )

    return lack


def without_parts(*parts):
    """Return a change: entries lose these parts."""

    def lack(folder):
        for path in documents(folder):
            change(
                path,
                lambda it: [
                    entry.pop(part, None) for entry in it["data"].values() for part in parts
                ],
            )

    return lack


def without_files(*patterns):
    """Return a change: files or folders go."""

    def lack(folder):
        for pattern in patterns:
            for path in sorted(folder.glob(pattern)):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    return lack


def with_text(pattern, text):
    """Return a change: files have another text; None cuts them in the middle."""

    def lack(folder):
        for path in folder.glob(pattern):
            old = path.read_text()
            path.write_text(old[: len(old) // 2] if text is None else text)

    return lack


def with_entry(name, **parts):
    """Return a change: one entry of each document gets further parts."""

    def lack(folder):
        for path in documents(folder):
            change(path, lambda it: it["data"][name].update(parts))

    return lack


def rows(count, cut=False, beside=False):
    """Return a change: rows of the monitor in place of the dump, or beside it."""

    def lack(folder):
        if not beside:
            without_files("step*")(folder)
        for rank in range(2):
            file = SeriesFile(str(folder / "monitor" / f"rank{rank}"))
            for step in range(count):
                file.write(step, {"loss": 1.0 + step % 2 / 10, "fc.weight.grad": 0.5})
            file.close()
            if cut:
                content = (folder / "monitor" / f"rank{rank}" / "series.bin").read_bytes()
                (folder / "monitor" / f"rank{rank}" / "series.bin").write_bytes(
                    content[: len(content) // 3]
                )

    return lack


NUMBERS = ("Max", "Min", "Mean", "Norm")
FORWARD = "Functional.matmul.0.forward"
#: what a folder lacks -> how it is taken away
LACKS = {
    "run.json": without_files("step0/rank*/run.json"),
    "run.json of one rank": without_files("step0/rank1/run.json"),
    "run.jsonl": without_files("step0/rank*/run.jsonl"),
    "half of run.json": with_text("step0/rank*/run.json", None),
    "stack.json": without_files("step*/rank*/stack.json"),
    "construct.json": without_files("step*/rank*/construct.json"),
    "dump.json": without_files("step*/rank*/dump.json"),
    "dump.json of one step": without_files("step1/rank*/dump.json"),
    "half of dump.json": with_text("step*/rank*/dump.json", None),
    "half of one dump.json": with_text("step1/rank1/dump.json", None),
    "all of dump.json": with_text("step*/rank*/dump.json", "{}"),
    "a list for dump.json": with_text("step*/rank*/dump.json", "[]"),
    "entries": without_entries(""),
    "a step": without_files("step1"),
    "the last step": without_files(f"step{STEPS - 1}"),
    "all steps but one": without_files("step1", "step2"),
    "a rank": without_files("step*/rank1"),
    "a rank in one step": without_files("step1/rank1"),
    "all": without_files("step*"),
    "backwards": without_entries(".backward", "parameters_grad"),
    "gradients of parameters": without_entries("parameters_grad"),
    "updates": without_entries("optimizer"),
    "forwards": without_entries(".forward"),
    "the loss": without_entries("cross_entropy"),
    "all calls but one": without_entries("Cell", "cross_entropy", "backward"),
    "numbers": without_keys(*NUMBERS),
    "Max and Min": without_keys("Max", "Min"),
    "Norm": without_keys("Norm"),
    "Mean": without_keys("Mean"),
    "numbers of one call": without_keys(*NUMBERS, only="matmul"),
    "numbers of one rank": without_keys(*NUMBERS, ranks="1"),
    "numbers of one step": without_keys(*NUMBERS, steps="1"),
    "numbers of gradients": without_keys(*NUMBERS, only="backward"),
    "numbers of parameters": without_keys(*NUMBERS, only="Cell.fc"),
    "shapes": without_keys("shape"),
    "outputs": without_parts("output"),
    "inputs": without_parts("input_args", "input"),
    "parameters": without_parts("parameters"),
    "an entry that failed": with_entry(FORWARD, error="MeasureError: x", output=[None]),
    "a call that raised": with_entry(FORWARD, raised="ValueError", output=[]),
    "a tensor that was not read": with_entry(
        FORWARD,
        output=[
            {
                "type": "mindspore.Tensor",
                "dtype": "Float32",
                "shape": [8, 3],
                "unread": "MeasureError",
            }
        ],
    ),
    "a dump, beside rows": rows(30),
    "a dump, and all rows but two": rows(2),
    "a dump, and half of the rows": rows(30, cut=True),
    "nothing, with rows beside it": rows(30, beside=True),
}

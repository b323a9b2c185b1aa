# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""One run alone in a few lines: what `probe check A` says."""

from __future__ import annotations

import math
from typing import Any

from probe.reading.check.difference import listed
from probe.reading.check.snapshot import RunSnapshot, mapping
from probe.reading.dumps import text


def describe(snapshots: list[RunSnapshot]) -> str:
    """Return the description of a run: that of its first rank."""
    first = snapshots[0]
    run, parameters = first.run, first.parameters
    code = mapping(run.get("code"))
    sizes = [math.prod(item["shape"]) for item in parameters.values() if _is_shape(item.get("shape"))]
    trainable = sum(item.get("trainable") is True for item in parameters.values())
    versions = ", ".join(f"{name} {version}" for name, version in mapping(run.get("versions")).items())
    context = mapping(run.get("context"))
    words = run.get("command")
    lines = [
        f"run: {first.path}" + (f", and {len(snapshots) - 1} more ranks" if len(snapshots) > 1 else ""),
        f"command: {' '.join(map(str, words)) if isinstance(words, list) else ''}",
        f"folder: {run.get('folder')} on {run.get('host')}, process {run.get('process')}",
        f"code: {len(mapping(code.get('files')))} files, "
        + (f"commit {code['commit']}" if code.get("commit") else "no git repository"),
        f"versions: python {run.get('python')}, {versions}, and {len(mapping(run.get('packages')))} packages",
        f"device: {run.get('device')}, world size {run.get('world_size')}, "
        f"{'GRAPH_MODE' if context.get('mode') == 0 else 'PyNative mode'}",
        f"seed: {run.get('seed')}, deterministic: {run.get('deterministic')}",
        f"model: {len(first.cells)} Cells, {len(parameters)} parameters with {sum(sizes):,} elements, "
        f"{trainable} of them trainable",
        f"steps: from {run.get('first_step')}; the batches of {len(first.inputs)} steps",
    ]
    for name, numbers in first.optimizers.items():
        shown = (f"{key} {value}" for key, value in numbers.items() if isinstance(value, (int, float)))
        lines.append(f"optimizer {name.rpartition('.')[2]}: {listed(shown, 12)}")
    notes = [f"{key} {value}" for key, value in first.notes.items()]
    lines += [f"notes: {listed(notes, 12)}"] if notes else []
    lines += [f"note: {first.damage}"] if first.damage else []
    return "\n".join(text.shorten(text.safe(line), 400) for line in lines)


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(size, int) for size in value)


def to_dict(snapshots: list[RunSnapshot]) -> list[dict[str, Any]]:
    """Return the snapshots of a run as values of JSON."""
    return [{"run": item.run, "notes": item.notes, "optimizers": item.optimizers, "inputs": item.inputs,
             "damage": item.damage} for item in snapshots]  # fmt: skip

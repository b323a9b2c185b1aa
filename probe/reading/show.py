# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""What is in a dump, as text for a terminal: the folders, then how many entries of each kind, then some of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from probe.reading.dump import Dump, find, read
from probe.store import layout

_ROWS = 16


def show(path: str, rows: int = _ROWS) -> str:
    """Return the description of every dump below a path.

    Args:
        path: a dump_path, a step folder or a rank folder.
        rows: how many tensors of the first dump are listed.

    Raises:
        UsageError: when there is no dump, or one cannot be read.
    """
    dumps = [read(folder) for folder in find(path)]
    parts = [_tree(path, dumps)]
    parts += [_kinds(dump, path) for dump in dumps[:1]]
    parts.append(_numbers(dumps[0], rows))
    return "\n\n".join(parts)


def _tree(path: str, dumps: Sequence[Dump]) -> str:
    lines = [os.path.abspath(path)]
    for dump in dumps:
        lines.append(f"  {os.path.relpath(dump.folder, path)}/")
        for name in sorted(os.listdir(dump.folder)):
            full = os.path.join(dump.folder, name)
            if name == layout.ARRAYS:
                sizes = [entry.stat().st_size for entry in os.scandir(full)]
                lines.append(f"    {name + '/':<22} {_size(sum(sizes)):>9}  {len(sizes)} files")
            elif os.path.isfile(full):
                count = f"  {len(dump.data)} entries" if name in (layout.DUMP, layout.DEBUG) else ""
                lines.append(f"    {name:<22} {_size(os.path.getsize(full)):>9}{count}")
    return "\n".join(lines)


_STRANGE = ("nan_count", "inf_count", "negative_inf_count", "positive_inf_count")


def _kinds(dump: Dump, path: str) -> str:
    forward, backward, gradients, tensors, nonfinite = (Counter[str]() for _ in range(5))
    for name in dump.data:
        kind = name.split(".", 1)[0]
        counter = gradients if ".parameters_grad." in name else backward if _is_backward(name) else forward
        counter[kind] += 1
    for place, record in dump.tensors():
        kind = place.split(".", 1)[0]
        tensors[kind] += 1
        nonfinite[kind] += any(record.get(key) for key in _STRANGE)
    kinds = sorted({*forward, *backward, *gradients})
    columns = (forward, backward, gradients, tensors, nonfinite)
    header = ["kind", "forward", "backward", "parameters_grad", "tensors", "not finite"]
    body = [[kind, *(str(column[kind]) for column in columns)] for kind in kinds]
    total = ["all", *(str(sum(column.values())) for column in columns)]
    where = os.path.relpath(dump.folder, path)
    return f"{where}: task {dump.header.get('task')}, level {dump.header.get('level')}\n" + _table(
        [header, *body, total]
    )


def _is_backward(name: str) -> bool:
    return name.endswith(".backward") or ".backward." in name


def _numbers(dump: Dump, rows: int) -> str:
    header = ["tensor", "dtype", "shape", "Max", "Min", "Mean", "Norm"]
    body: list[list[str]] = []
    count = 0
    for place, record in dump.tensors():
        count += 1
        if len(body) < rows:
            numbers = [_number(record.get(key)) for key in header[3:]]
            body.append(
                [place, str(record.get("dtype")), "x".join(map(str, record.get("shape", []))) or "()", *numbers]
            )
    more = f"\n… and {count - len(body)} more" if count > len(body) else ""
    return _table([header, *body]) + more


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(value)


def _table(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*lines)]
    return "\n".join(_line(cells, widths) for cells in lines)


def _line(cells: Iterable[str], widths: Sequence[int]) -> str:
    first, *rest = (
        cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(cells, widths))
    )
    return "  " + "  ".join([first, *rest]).rstrip()


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")

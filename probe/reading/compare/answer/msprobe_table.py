# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A comparison in the columns of msprobe's own compare, for macros and readers of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from probe.reading.compare.judging.judged_pairs import JudgedPairs
from probe.reading.compare.judging.verdicts import HARD
from probe.reading.compare.pairing.alignment import NONE
from probe.reading.dumps.frames import user_frame
from probe.reading.dumps.values import NUMBERS, is_tensor, real

STATISTICS_COLUMNS = (
    "NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape",
    "NPU Requires_grad", "Bench Requires_grad", "Max diff", "Min diff", "Mean diff", "L2norm diff",
    "MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr",
    "NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean", "Bench l2norm",
    "Requires_grad Consistent", "Result", "Err_message", "NPU_Stack_Info",
)  # fmt: skip
_NONE = "N/A"


def rows(comparing: JudgedPairs) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each tensor; NPU is B, Bench is A, as msprobe has it."""
    flow_a, flow_b = comparing.alignment.flows
    for pair, slots in zip(comparing.pairs, comparing.slots):
        name_a = flow_a.names[pair.a] if pair.a != NONE else ""
        name_b = flow_b.names[pair.b] if pair.b != NONE else ""
        if not name_a or not name_b:
            yield (name_b or _NONE, name_a or _NONE, *(_NONE,) * 23, "warning", "no partner", _NONE)
            continue
        frame = user_frame(comparing.b.stacks.get(name_b, []))
        for place, _, a, b, _, verdict in slots:
            if is_tensor(a) and is_tensor(b):
                needs = b.get("requires_grad", _NONE), a.get("requires_grad", _NONE)
                yield (
                    f"{name_b}.{place}", f"{name_a}.{place}", b.get("dtype"), a.get("dtype"), str(b.get("shape")),
                    str(a.get("shape")), *needs, *_numbers(a, b), _NONE in needs or needs[0] == needs[1],
                    "error" if verdict in HARD else "pass", verdict, str(frame or _NONE),
                )  # fmt: skip


def _numbers(a: dict[str, Any], b: dict[str, Any]) -> list[Any]:
    gaps: list[Any] = []
    relative: list[Any] = []
    for key in NUMBERS:
        left, right = real(a.get(key)), real(b.get(key))
        if left is None or right is None:
            gaps.append(_NONE)
            relative.append(_NONE)
            continue
        gaps.append(right - left)
        relative.append(f"{abs(right - left) / abs(left) * 100:.6f}%" if left else _NONE)
    return [*gaps, *relative, *(b.get(key) for key in NUMBERS), *(a.get(key) for key in NUMBERS)]

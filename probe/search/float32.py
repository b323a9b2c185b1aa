# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An experiment about NaN/Inf: the smallest set of Cells that makes it go when it computes in float32."""

from __future__ import annotations

from collections.abc import Iterator

from probe.findings.sentence import say
from probe.reading.dumps.run import open as open_run
from probe.reading.dumps.values import tensors_in
from probe.search.lab import Lab, failed
from probe.search.ledger import Result
from probe.search.recordings import RECORD, wanted_steps
from probe.search.watching import watched

FLOAT32 = "float32"
_HALF = frozenset(("Float16", "BFloat16"))


def can_widen(lab: Lab) -> bool:
    """Return whether a loss is NaN/Inf, and the recorded steps have numbers of half precision."""
    if lab.wishes.ranks > 1 or watched(lab, "nonfinite") is None or not lab.has_steps(RECORD):
        return False
    if lab.wishes.seed is not None:  # nor does probe bisect
        return False
    return any(dtype in _HALF for dtype in _dtypes(lab.place(RECORD, "dump")))


def widen(lab: Lab) -> Result:
    """Look for the smallest set of Cells that makes NaN/Inf go when it computes in float32."""
    last = watched(lab, "nonfinite")
    words = ["bisect", *lab.wishes.options, "--until", "finite", "--float32"]
    words += ["--steps", str(last + 1), "-o", lab.place(FLOAT32, "runs"), "--json", "-"]
    done = lab.do(FLOAT32, [*words, *lab.wishes.repeated.words])
    answer = lab.answer(FLOAT32)
    if not answer:
        return failed(FLOAT32, done)
    if answer["key"] == "bisect.holds":  # NaN/Inf is in gradients alone
        return Result(FLOAT32, "failed", say("find.float32_no_loss"), done.seconds, 1)
    names = answer["found"]
    runs = len(answer["runs"])
    if names:
        learned = say("find.float32_goes", names=names, runs=runs)
        return Result(FLOAT32, "goes", learned, done.seconds, runs, {"names": names})
    learned = say("find.float32_stays", runs=runs)
    return Result(FLOAT32, "stays", learned, done.seconds, runs)


def _dtypes(path: str) -> Iterator[str]:
    """Yield the dtypes of the outputs in a dump."""
    for dump in open_run(path):
        for call in dump:
            for tensor in tensors_in(call.entry, "output"):
                yield str(tensor.get("dtype"))
        dump.release()


def widened_steps(lab: Lab) -> list[int]:
    """Return the step of the first NaN/Inf."""
    last = watched(lab, "nonfinite")
    return wanted_steps(lab) if last is None else [last]

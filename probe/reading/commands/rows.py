# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe compare`` of two runs that have rows of the monitor, or rolling records, and no dump."""

from __future__ import annotations

import argparse
import json

from probe.findings.sentence import say
from probe.naming import ranges
from probe.reading.dumps import text


def compare_rows_alone(given: argparse.Namespace, golden: str, target: str) -> int:
    """Print the first difference of the rows of two runs, with the call and the next step; return the status."""
    from probe.reading.report.row_pairs import compare_rows
    from probe.series.series import open_series

    left = open_series(golden)
    right = open_series(target)
    found = compare_rows(left, right, given.tolerance)
    if given.json == "-":
        print(json.dumps(found.to_dict(), indent=1))
        return found.status
    told = [found.said] if found.first else []
    if found.call is not None:
        told.append(say("calls.next", first=found.call.first))
    if not found.first:
        steps = ", ".join(ranges({step for rank in right for step in rank.steps}))
        told.append(say("rows.equal", count=found.compared, steps=steps))
    for sentence in [*told, *found.lacks]:
        print(text.safe(sentence.text(given.lang)))
    return found.status

# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The command ``probe check``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from probe.errors import UsageError
from probe.reading.commands.arguments import add_language, add_parser
from probe.reading.commands.findings import show_guards


def add_check(commands: Any) -> None:
    """Add ``probe check``."""
    parser = add_parser(
        commands,
        "check",
        "are two runs, or two checkpoints, the same experiment?",
        "Compare parameters, batches, Cells, optimizers, seeds, versions and the command of two runs, or the weights "
        "of two checkpoints. One path is described.",
        "Exit status: 0 the same, 1 differences, 2 wrong use, or a file that cannot be read.",
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH",
        help="[GOLDEN] TARGET: a dump_path, a run.json, or a checkpoint (.ckpt, .safetensors, .npz, .pt, .bin)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="write the result as JSON")
    add_language(parser)
    parser.set_defaults(run=run_check, failed=2)


def run_check(given: argparse.Namespace) -> int:
    """Run ``probe check``."""
    from probe.reading.check.check import check
    from probe.reading.check.describe import describe, to_dict
    from probe.reading.check.snapshot import read_snapshots
    from probe.reading.check.weights.check import describe_weights
    from probe.reading.check.weights.kinds import is_checkpoint
    from probe.reading.dumps.guard_findings import guard_findings

    if len(given.paths) > 2:
        raise UsageError("check takes one run or two: probe check [GOLDEN] TARGET")
    if len(given.paths) == 2:
        result = check(*given.paths)
        print(json.dumps(result.to_dict(), indent=1) if given.json else result.text(given.lang))
        return int(bool(result.differences))
    if is_checkpoint(given.paths[0]):
        print(describe_weights(given.paths[0], given.json, given.lang))
        return 0
    snapshots, guards = read_snapshots(given.paths[0]), guard_findings(given.paths[0])
    if given.json:
        described = to_dict(snapshots)
        described[0]["guards"] = [item.to_dict() for item in guards]
        print(json.dumps(described, indent=1))
    else:
        print(describe(snapshots, given.lang))
        show_guards(guards, given.lang)
    return 0

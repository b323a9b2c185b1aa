# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The command ``probe check``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from probe.errors import UsageError
from probe.reading.commands.arguments import add_language, add_parser, add_workers, workers


def add_check(commands: Any) -> None:
    """Add ``probe check``."""
    parser = add_parser(
        commands,
        "check",
        "what is wrong in one run? are two runs, or two checkpoints, the same experiment?",
        "Look at one run alone: untrained parameters, modes, losses, numbers. Or compare parameters, batches, "
        "Cells, optimizers, seeds, versions and the command of two runs, or the weights of two checkpoints.",
        "Exit status: 0 no fault, or the same; 1 a fault, or differences; 2 wrong use, or a file that cannot be read.",
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH",
        help="[GOLDEN] TARGET: a dump_path, a run.json, or a checkpoint (.ckpt, .safetensors, .npz, .pt, .bin)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="write the result as JSON")
    parser.add_argument("--rows", type=int, default=12, help="how many findings of one run to list (0: all)")
    add_workers(parser)
    add_language(parser)
    parser.set_defaults(run=run_check, failed=2)


def run_check(given: argparse.Namespace) -> int:
    """Run ``probe check``."""
    from probe.reading.check.check import check
    from probe.reading.check.weights.check import describe_weights
    from probe.reading.check.weights.kinds import is_checkpoint
    from probe.reading.one_run.health.run_check import check_run

    if len(given.paths) > 2:
        raise UsageError("check takes one run or two: probe check [GOLDEN] TARGET")
    if len(given.paths) == 2:
        result = check(*given.paths)
        print(json.dumps(result.to_dict(), indent=1) if given.json else result.text(given.lang))
        return int(bool(result.differences))
    if is_checkpoint(given.paths[0]):
        print(describe_weights(given.paths[0], given.json, given.lang))
        return 0
    alone = check_run(given.paths[0], workers(given))
    print(json.dumps(alone.to_dict(), indent=1) if given.json else alone.text(given.lang, given.rows))
    return 1 if not alone.ok else 2 * bool(alone.errors)

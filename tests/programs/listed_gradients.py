# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares the gradients of all listed APIs with central differences. Prints those that do not agree, then counts.

python -m tests.programs.listed_gradients [FIRST [LAST]]        (numbers of APIs; a crash of MindSpore ends it)
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import mindspore as ms

from probe.capture.support_ops import load_supported_apis
from probe.reading.dumps.run import open as open_run
from probe.replaying.composing import program_of
from probe.replaying.described import CannotReplayError, not_replayed
from probe.replaying.worker import replay_call
from tests.support.dumps import Debug
from tests.whitelist import running
from tests.whitelist.comparing import working_call


def checked(folder):
    """Yield name and result of each backward entry of a step."""
    for call in next(iter(open_run(str(folder)))):
        if call.direction == "backward" and call.parts.kind == "api":
            try:
                yield call.name, replay_call(program_of(call))
            except CannotReplayError as error:
                yield call.name, not_replayed(error.reason)


def main(first=0, last=10_000):
    apis = load_supported_apis(None)
    counts = Counter()
    with tempfile.TemporaryDirectory() as folder:
        debug = Debug(Path(folder))
        debugger = debug(level="L1", task="tensor", unlisted=False)
        step = 0
        for number, api in enumerate(apis[int(first) : int(last)], int(first)):
            _, values, bare = working_call(api)
            if (
                values is None
                or bare is None
                or not values.floats
                or not running.differentiable(bare.outputs)
            ):
                counts["no gradient"] += 1
                continue
            debugger.start()
            try:
                running.gradient(api, values, running.Mode(), id)
            except Exception:  # whatever MindSpore does not like
                counts["raised"] += 1
                continue
            finally:
                debugger.stop()
                debugger.step()
                step += 1
            for name, result in checked(debug.dump_path / f"step{step - 1}"):
                counts[result.verdict] += 1
                if result.verdict != "ok":
                    notes = [
                        f"{item.place} {item.off:.1e}/{item.here:.1e} {item.said}"
                        for item in result.outputs
                    ]
                    print(
                        number,
                        name,
                        result.verdict,
                        str(result.reason)[:100],
                        *notes,
                        sep=" | ",
                        flush=True,
                    )
            print(number, end="\r", file=sys.stderr, flush=True)
    print(dict(counts), flush=True)


if __name__ == "__main__":
    ms.set_context(mode=ms.PYNATIVE_MODE)
    main(*sys.argv[1:])

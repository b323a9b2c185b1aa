# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes healthy calls of all listed APIs again, in float32 and float16. Prints those that are not ok, then counts.

python -m tests.programs.listed_replayed [--spread S] [--all] [FIRST [LAST]]    (a crash of MindSpore ends it)
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from unittest import mock

import mindspore as ms
import numpy as np

from probe.capture.support_ops import load_supported_apis
from probe.reading.dumps.run import open as open_run
from probe.replaying import evaluating
from probe.replaying.described import CannotReplayError, not_replayed
from probe.replaying.describing import describe
from probe.replaying.judging import FORMATS
from probe.replaying.worker import replay_call
from tests.support.dumps import Debug
from tests.whitelist import running
from tests.whitelist.comparing import working_call
from tests.whitelist.generate import Values, variants


def calls(api, spread):
    """Yield the values of calls of an API that work, in float32 and in float16."""
    outcome, values, bare = working_call(api)
    if values is None:
        return
    if spread and values.floats:
        wide = Values(api.key, outcome.call)
        rng = np.random.RandomState(len(api.key))
        for place in wide.floats:
            array = wide.arrays[place]
            wide.arrays[place] = np.asarray(rng.randn(*array.shape) * spread).astype(array.dtype)
        try:
            yield wide, running.forward(api, wide)
        except Exception:  # whatever MindSpore does not like
            yield values, bare
    else:
        yield values, bare
    for call in variants(api, outcome.call):
        found = working(api, call)
        if found is not None:
            yield found


def working(api, call):
    """Return the values and the run of a call, or None if MindSpore raises."""
    try:
        values = Values(api.key, call)
        return values, running.forward(api, values)
    except Exception:  # whatever MindSpore does not like
        return None


def results(folder):
    """Yield name and result of each entry of a step."""
    for call in next(iter(open_run(str(folder)))):
        if call.parts.kind != "api":
            continue
        try:
            yield call.name, replay_call(describe(call))
        except CannotReplayError as error:
            yield call.name, not_replayed(error.reason)


class Judge:
    """The judge, which notes how far this machine's kernel is, in roundings of the greatest and of each element."""

    def __init__(self):
        self.noted = {}
        self._judge = evaluating.judge

    def __call__(self, place, outcome, operation):
        self.noted[place] = ""
        if (
            outcome.dtype in FORMATS
            and outcome.golden.size
            and outcome.here.shape == outcome.golden.shape
        ):
            wide = np.complex128 if outcome.golden.dtype.kind == "c" else np.float64
            golden, here = outcome.golden.astype(wide), outcome.here.astype(wide)
            usual = np.isfinite(golden) & np.isfinite(here)
            off = np.abs(np.where(usual, here - golden, 0))
            size = np.abs(np.where(usual, golden, 0))
            unit = FORMATS[outcome.dtype][0]
            greatest = float(size.max()) or 1.0
            moved = 0.0
            if outcome.shaken is not None and outcome.shaken.shape == golden.shape:
                moved = float(np.abs(np.where(usual, outcome.shaken - golden, 0)).max())
            own = float(np.max(off / np.maximum(size, 1e-30)))
            self.noted[place] = (
                f"{outcome.dtype} {off.max() / greatest / unit:.3g} of the greatest {own / unit:.3g} of its own "
                f"{off.max() / max(moved, 1e-30):.3g} of the change; odd {int((~usual & np.isfinite(golden)).sum())}"
            )
        return self._judge(place, outcome, operation)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spread", type=float, default=0.0)
    parser.add_argument("--all", action="store_true", help="print right ones too")
    parser.add_argument("first", nargs="?", type=int, default=0)
    parser.add_argument("last", nargs="?", type=int, default=10_000)
    given = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.runtime.launch_blocking()
    counts, judge = Counter(), Judge()
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(evaluating, "judge", judge):
        debug = Debug(Path(folder))
        debugger = debug(level="L1", task="tensor", unlisted=False)
        step = 0
        for number, api in enumerate(
            load_supported_apis(None)[given.first : given.last], given.first
        ):
            for values, bare in calls(api, given.spread):
                debugger.start()
                try:
                    if values.floats and running.differentiable(bare.outputs):
                        running.gradient(api, values, running.Mode(), id)
                    else:
                        running.forward(api, values)
                except Exception:  # whatever MindSpore does not like
                    counts["raised"] += 1
                finally:
                    debugger.stop()
                    debugger.step()
                    step += 1
                where = debug.dump_path / f"step{step - 1}"
                if not where.exists():
                    continue
                judge.noted.clear()
                for name, result in results(where):
                    way = name.rpartition(".")[2]
                    counts[f"{way} {result.verdict}"] += 1
                    counts[f"{way} golden: {result.golden}"] += 1
                    if given.all or result.verdict in ("wrong", "worse than expected"):
                        notes = [
                            f"{item.place} {item.off:.1e}/{item.here:.1e} {item.said} {judge.noted.get(item.place)}"
                            for item in result.outputs
                        ]
                        print(
                            number,
                            name,
                            result.golden,
                            result.verdict,
                            *notes,
                            sep=" | ",
                            flush=True,
                        )
                    judge.noted.clear()
            print(number, end="\r", file=sys.stderr, flush=True)
    print(dict(counts), flush=True)


if __name__ == "__main__":
    main()

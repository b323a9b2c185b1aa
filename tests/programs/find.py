# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Gives sick and healthy trainings to ``probe find``: is the cause named, with its line, and is nothing claimed?

    python -m tests.programs.find [--only golden,alone,healthy] [--case TEXT] [--keep DIR]

Half of the sick trainings have a golden program, half are alone. Exit status 1 if a wrong cause is called proved, or
a cause of a healthy training is.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.paths import ROOT, environment

SICK = ROOT / "tests" / "programs" / "sick"


class Case(NamedTuple):
    """A training.

    Attributes:
        words: the program and its arguments.
        golden: the golden program and its arguments; "" for none.
        named: a regular expression that the sentence or the name of the cause has; "" for a healthy training.
        source: one that the line of code has; "" where the cause is no line.
        options: further options of the command.
    """

    words: str
    golden: str = ""
    named: str = ""
    source: str = ""
    options: tuple[str, ...] = ()


def _report(name, named, source=""):
    return Case(f"{name}.py bad", f"{name}.py good", named, source)


#: how the cause of each fault of drilled.py is told, and its line
_DRILLED = {
    "gradient": (r"__mul__|gradients that entered", r"10000"),
    "nan": (r"log|NaN", r"ops\.log"),
    "rate": (r"learning_rate", ""),
    "batch": (r"batch|data", ""),
    "transposed": (r"weight|table", ""),
    "frozen": (r"learning_rate|learning rate|no update|leaves", ""),
}


def _drilled(net, fault, has_golden):
    golden = f"drilled.py {net} none" if has_golden else ""
    return Case(f"drilled.py {net} {fault}", golden, *_DRILLED[fault])


def _alone(name, named, source):
    return Case(f"{name}.py bad", "", named, source)


def _fault(name, named, source=""):
    return Case(f"one_run.py fault '{name}'", "", named, source)


GOLDEN = (
    _report("eos_ignored", r"the batch differs: Tensor.__getitem__", r"labels"),
    _report("kv_tile", r"tile", r"tile"),
    _report("old_table", r"embed|table", ""),
    _report("same_order", r"batch|data|order", ""),
    _report("schedule_twice", r"learning_rate", ""),
    _report("vq_beta", r"__mul__|0\.25|commit|follow", r"0\.25"),
    _report("ring_gan", r"stop_gradient", r"stop_gradient"),
    _report("even_tokens", r"sum|mean|div", r"weights\.sum\(0"),
    _report("two_nets", r"weight of 1\.first", ""),
    _report("group_rates", r"learning_rate of 2\.weight", ""),
    _report("loss_scale", r"unscale|__mul__|gradients that entered", ""),
    _report("far_places", r"astype|to\.|Float16", r"float16"),
    _report("column_loss", r"reshape|shape", ""),
    _report("untied", r"head|table|weight", ""),
    _report("decay_inside", r"the optimizer is AdamWeightDecay in A, Adam in B", ""),
    _report("fitted_twice", r"eps|batch_norm|BatchNorm", ""),
    *(
        _drilled(net, fault, True)
        for net, fault in (
            ("mlp", "gradient"), ("conv", "rate"), ("gated", "transposed"), ("mixture", "nan"),
        )
    ),
)  # fmt: skip
ALONE = (
    _alone("log_of_sum", r"log", r"ops\.log"),
    _alone("fitted", r"log", r"ops\.log"),
    _alone("own_backward", r"bprop", ""),
    _alone("column_loss", r"shape|broadcast", r"found - y"),
    _alone("half_softmax", r"Float16|float16|cast|to\.", r"float16"),
    Case("two_ranks.py bad", "", r"parameters are others", "", ("--ranks", "2")),
    *(
        _drilled(net, fault, False)
        for net, fault in (
            ("residual", "gradient"), ("mixture", "rate"), ("attention", "transposed"), ("gated", "frozen"),
        )
    ),
    _fault("stop_gradient", r"stop_gradient", r"stop_gradient"),
    _fault("asnumpy and back", r"AvgPool", r"self\.pool"),
    _fault("argmax", r"argmax", r"argmax"),
    _fault("integer cast", r"Int32", r"int32"),
    _fault("softmax before cross entropy", r"softmax", r"."),
    _fault("sum of squares in float16", r"__mul__|sum", r"half"),
    _fault("epsilon rounds to zero", r"1e-08|__add__", r"1e-8"),
    _fault("relu dead", r"relu", r"relu"),
    _fault("never in training mode", r"training mode", ""),
    _fault("head not in the optimizer", r"second\.weight", ""),
)  # fmt: skip
HEALTHY = (
    *(Case(f"drilled.py {net} none") for net in ("mlp", "conv", "attention")),
    *(Case(f"drilled.py {net} none", f"drilled.py {net} none") for net in ("gated", "residual")),
    Case("k_first.py bad", "k_first.py good"),
    Case("ring_gan.py good", "ring_gan.py good"),
    Case("even_tokens.py good"),
    Case("fitted_twice.py good"),
    *(
        Case(f"one_run.py healthy {name}")
        for name in ("gpt", "gpt_float16", "lstm", "bert", "regression", "frozen")
    ),
)  # fmt: skip
GROUPS = {"golden": GOLDEN, "alone": ALONE, "healthy": HEALTHY}


class Found(NamedTuple):
    """What the command has found.

    Attributes:
        answer: the last line of its answer.
        runs: how many runs of a training it made.
        seconds: how long it took.
        price: its time by that of the first run.
    """

    answer: dict
    runs: int
    seconds: float
    price: float


def find(case, folder):
    """Return what the command finds in a folder of its own."""
    shutil.copytree(SICK, folder, ignore=shutil.ignore_patterns("__pycache__"))
    golden = ["--golden", case.golden] if case.golden else []
    words = [sys.executable, "-m", "probe", "find", "--json", *case.options, *golden]
    begin = time.monotonic()
    done = subprocess.run(
        [*words, *_split(case.words)],
        check=False,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if not lines:
        raise RuntimeError(done.stderr[-1000:])
    *experiments, answer = lines
    assert answer["status"] == done.returncode
    runs = sum(row["runs"] for row in experiments)
    seconds = time.monotonic() - begin
    return Found(answer, runs, seconds, seconds / experiments[0]["seconds"])


def _split(words):
    return [word.strip("'") for word in re.findall(r"'[^']*'|\S+", words)]


def is_named(case, cause):
    """Return whether a cause is the planted one: by its sentence or name, and by its line where it has one."""
    said = " ".join(str(cause[key] or "") for key in ("sentence", "name", "source"))
    is_right = bool(re.search(case.named, said))
    return is_right and bool(re.search(case.source, cause["source"] or ""))


def judged(case, answer):
    """Return a word for an answer: right, WRONG and proved, wrong, symptom, nothing, unknown, or CLAIMED."""
    cause = answer["cause"]
    if not case.named:
        return "well" if answer["status"] in (0, 2) and cause is None else "CLAIMED"
    if cause is None:
        return answer["answer"]
    if is_named(case, cause):
        return "right"
    return "WRONG and proved" if cause["strength"] in ("experiment", "bits") else "wrong"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument("--case", default="")
    parser.add_argument("--keep", default="")
    given = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(given.keep or scratch).resolve()
        place.mkdir(parents=True, exist_ok=True)
        for group in given.only.split(","):
            words, runs, strengths, prices = [], [], [], []
            for number, case in enumerate(GROUPS[group]):
                if given.case not in case.words:
                    continue
                folder = place / f"{group}{number}"
                found = find(case, folder)
                word = judged(case, found.answer)
                cause = found.answer["cause"] or {}
                words.append(word)
                runs.append(found.runs)
                prices.append(found.price)
                strengths.append(cause.get("strength", "none") if word == "right" else "none")
                bad += word in ("CLAIMED", "WRONG and proved")
                at = f"{Path(cause['file']).name}:{cause['line']}" if cause.get("file") else ""
                line = f"{word}: {case.words}: {found.answer['sentence'][:160]} [{at}]"
                print(
                    f"{line} {cause.get('strength')}, {found.runs} runs, {found.seconds:.0f} s, x {found.price:.1f}",
                    flush=True,
                )
                if not given.keep:
                    shutil.rmtree(folder)
            counts = {word: words.count(word) for word in dict.fromkeys(words)}
            proved = {word: strengths.count(word) for word in dict.fromkeys(strengths)}
            middle = statistics.median(runs), statistics.median(prices)
            print(
                f"{group}: {len(words)} trainings, {counts}; evidence of the right ones: {proved}"
            )
            print(
                f"    median {middle[0]:g} runs, and {middle[1]:.1f} times the time of the first run"
            )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())

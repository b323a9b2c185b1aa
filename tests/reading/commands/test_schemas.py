# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe --json-schema: real answers of every command, of good runs and bad ones, have its keys, all of them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil

import jsonschema
import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

import probe
from probe.__main__ import main
from probe.intervention import SHORT
from probe.search import NAME as FIND
from tests.monitor.trainings import Training
from tests.reading.builders import write
from tests.reading.commands.test_help import COMMANDS
from tests.reading.compare.origins.test_casts import net
from tests.support.schemas import SCHEMAS, all_keys, keys, validate

pytestmark = pytest.mark.slow
#: tests/intervention/test_command.py and tests/search/test_programs.py hold the answers of the others to their schemas
READERS = [command for command in SCHEMAS if command not in (*SHORT, FIND)]


class Net(nn.Cell):
    """A net with a place for a change."""

    def __init__(self, change):
        super().__init__()
        self.change, self.first, self.last = change, nn.Dense(8, 6), nn.Dense(6, 2)

    def construct(self, x):
        x = self.first(x) * (1.5 if self.change == "factor" else 1.0)
        if self.change == "nan":
            x = x / (x - x)
        if self.change == "half":
            x = ops.relu(x.astype(ms.float16)).astype(ms.float32)
        return self.last(ops.relu(x))


def train(folder, change="", task="statistics", ranks=(None,), kept=None):
    """Record two steps; copy the files of the open step to ``kept``, as a killed process leaves them."""
    ms.set_seed(1)
    settings = {"task": task, "level": "mix", "dump_path": str(folder), "saved_tensors": True}
    (folder.parent / "config.json").write_text(json.dumps(settings))
    debugger = probe.PrecisionDebugger(config_path=folder.parent / "config.json")
    for rank in ranks:
        np.random.seed(2)
        model = Net(change)
        optimizer, loss = nn.SGD(model.trainable_params(), 0.1), nn.MSELoss()
        grad = ms.value_and_grad(lambda x, y: loss(model(x), y), None, optimizer.parameters)  # noqa: B023
        debugger.set_init_step(0)
        for _ in range(2):
            debugger.start(model, rank_id=rank)
            optimizer(
                grad(
                    Tensor(np.random.randn(4, 8).astype(np.float32)),
                    Tensor(np.ones((4, 2), np.float32)),
                )[1]
            )
            if kept is not None and not kept.exists():
                shutil.copytree(folder, kept)
            debugger.stop()
            debugger.step()
    debugger.close()
    return model


def watch(folder):
    """Watch a training whose loss becomes NaN."""
    debugger, training = (
        probe.PrecisionDebugger(task="monitor", dump_path=folder, level="L0"),
        Training(1),
    )
    training.change = lambda step, x, y: (x * np.float32("nan") if step == 3 else x, y)
    for step in range(5):
        debugger.start(training.net)
        training.step(step)
        debugger.stop()
        debugger.step()
    debugger.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The folder of all runs."""
    place = tmp_path_factory.mktemp("runs")
    good, bad = (
        train(place / "good", task="tensor", kept=place / "killed"),
        train(place / "bad", "factor", "tensor"),
    )
    for name, model in (("good", good), ("bad", bad)):
        ms.save_checkpoint(model, str(place / f"{name}.ckpt"))
    for change in ("nan", "half"):
        train(place / change, change)
    train(place / "ranks", ranks=(0, 1))
    watch(place / "watch")
    for name, calls in (("single", net(is_half=False)), ("mixed", net(3e-3))):
        write(place / name / "step0" / "rank", calls)
    array = next((place / "bad").rglob("Functional.relu.0.forward.output.0.npy"))
    np.save(array, np.load(array) * np.float32(1.01))
    return place


#: command, its arguments, and its exit status; a name is that of a run
ANSWERS = [
    ("show good --name relu --step 0 --stack", 0), ("show nan --nonfinite", 0), ("show half --dtypes", 0),
    ("show good --fits float8_e4m3fn --step 0", 0), ("check good", 0), ("check nan", 1), ("check good bad", 1),
    ("check good good", 0), ("check good.ckpt", 0), ("check good.ckpt bad.ckpt", 1), ("compare good good", 0),
    ("compare good bad", 1), ("compare good half", 1), ("compare good nan", 1), ("compare single mixed", 1),
    ("nan good", 0), ("nan nan", 1),
    ("ranks ranks", 1), ("trend good", 0), ("trend watch", 1), ("watch watch", 1), ("recover killed", 0),
    ("find good", 0), ("find nan", 1), ("find good bad", 1), ("find watch", 1), ("find nan nan", 1),
    ("report good -o page.html", 0), ("report good bad -o page.html", 1), ("replay good --all --step 0", 0),
    ("replay bad Functional.relu.0.forward --step 0", 1), ("doctor --device GPU", 1),
]  # fmt: skip


@pytest.fixture(scope="module")
def answers(place):
    """Command -> its answers, each held to the schema."""

    found, here = {}, os.getcwd()
    os.chdir(place)
    try:
        for line, status in ANSWERS:
            command, *words = line.split()
            with contextlib.redirect_stdout(io.StringIO()) as out:
                assert main([command, *words, "--json"]) == status, line
            found.setdefault(command, []).append(json.loads(out.getvalue()))
    finally:
        os.chdir(here)
    return found


@pytest.mark.parametrize("command", READERS)
def test_real_answers_have_the_keys_of_the_schema_and_no_others(answers, command):
    for answer in answers[command]:
        validate(command, answer)


def test_every_key_of_the_schemas_is_in_a_real_answer(answers):
    """A schema that names a key which no command writes would be wrong too."""
    seen = {
        pair
        for command, found in answers.items()
        for answer in found
        for pair in keys(command, answer)
    }
    known = {pair for command in READERS for pair in all_keys(command)}
    assert known - seen == set()


def test_every_command_that_answers_has_a_schema():
    assert SCHEMAS.keys() == set(COMMANDS) - {"run"}


def test_schemas_are_schemas_and_close_their_objects(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--json-schema"])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out) == SCHEMAS
    for command, schema in SCHEMAS.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        with pytest.raises(jsonschema.ValidationError):
            validate(command, {"another": 1})

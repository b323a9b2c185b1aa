# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe nan, probe ranks and probe trend: what they find, and what they leave alone."""

from __future__ import annotations

import json
import math

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

import probe
from probe import UsageError
from probe.__main__ import main
from tests.reading.builders import forward, tensor, write
from tests.support.tensors import tensor as of

pytestmark = pytest.mark.medium

INF = math.inf
MASK = of([[0, -INF, 0, 0], [0, 0, 0, -INF]])


class Net(nn.Cell):
    """Does something with the output of a Dense."""

    def __init__(self, function):
        super().__init__()
        self.fc, self.function = nn.Dense(4, 4), function

    def construct(self, x):
        return self.function(self.fc(x)).sum()


def recorded(debug, function, x=None):
    ms.set_seed(1)
    net = nn.SequentialCell(Net(function))
    debugger = debug(level="mix")
    debugger.start(net)
    ms.value_and_grad(net, None, net.trainable_params())(of(np.ones((2, 4))) if x is None else x)
    debugger.stop()
    debugger.step()
    return probe.open(debug.dump_path)


BAD = {
    "Functional.log.0.forward": lambda y: ops.log(ops.relu(y) * 0) * 0,
    "Tensor.__truediv__.0.forward": lambda y: y / (y - y),
    "Functional.exp.0.forward": lambda y: ops.exp(y * y * 1e6),
    "Functional.sqrt.0.backward": lambda y: ops.sqrt(ops.relu(y - 1e9)),
    "Tensor.__sub__.1.forward": lambda y: ((y - y) + MASK) - MASK,
}
GOOD = {
    "logarithm of a mask": lambda y: ops.softmax(y + ops.log(of([[0, 1, 1, 1], [1, 1, 1, 0]])), -1),
    "mask": lambda y: ops.softmax(y + MASK, -1),
    "filled": lambda y: ops.softmax(
        ops.masked_fill(y, of([[True, False, False, False]] * 2, bool), -INF), -1
    ),
    "clamped": lambda y: ops.log(ops.relu(y) + 1e-6),
}


@pytest.mark.parametrize("name", BAD)
def test_the_call_that_makes_it_is_named_with_its_line(debug, name):
    finding = probe.first_nan(recorded(debug, BAD[name]))
    assert finding.name == name
    assert finding.file == __file__
    assert finding.source


def test_minus_infinity_that_stays_is_no_mask(debug):
    finding = probe.first_nan(recorded(debug, lambda y: ops.log(ops.relu(y) * 0) + 1))
    assert finding.name == "Functional.log.0.forward"
    assert finding.sentence.startswith(
        "Functional.log.0.forward makes -Inf of finite inputs; the logarithm of 0"
    )


def test_the_dump_of_nan_check_names_the_same_call(debug):
    debugger = debug(task="nan_check", level="L1")
    debugger.start()
    ops.log(of([[0.0, 1.0]]) * 0)
    debugger.stop()
    debugger.step()
    assert probe.first_nan(probe.open(debug.dump_path)).name == "Functional.log.0.forward"


@pytest.mark.parametrize("name", GOOD)
def test_a_healthy_infinity_is_not_blamed(debug, name):
    assert probe.first_nan(recorded(debug, GOOD[name])) is None


def test_data_and_weights_are_told_apart_from_calls(debug, capsys):
    finding = probe.first_nan(recorded(debug, lambda y: y, of([[1.0, math.nan, 0, 0]] * 2)))
    assert finding.kind == "given"
    assert finding.place == "input.0"
    assert main(["nan", str(debug.dump_path)]) == 1
    assert "is given NaN in input.0; no recorded call made it" in capsys.readouterr().out


def test_a_rank_that_received_it_is_not_blamed(tmp_path, capsys):
    nan = {"Max": math.nan, "Min": math.nan, "Mean": math.nan, "Norm": math.nan, "nan_count": 1}
    for rank in (0, 1):
        data = {
            "Tensor.f.0.forward": forward(
                [tensor()], [tensor(norm=3.0, **(nan if rank == 1 else {}))]
            ),
            "Distributed.all_reduce.0.forward": forward(
                [tensor(norm=3.0, **(nan if rank == 1 else {}))], [tensor(**nan)]
            ),
        }
        write(tmp_path / "step0" / f"rank{rank}", data)
    finding = probe.first_nan(probe.open(tmp_path))
    assert (finding.rank, finding.name) == (1, "Tensor.f.0.forward")
    assert main(["nan", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["rank"] == 1


NAN = {"Max": math.nan, "Min": math.nan, "Mean": math.nan, "Norm": math.nan, "nan_count": 1}
FORWARD = {"Cell.fc.Dense.forward.0": forward([tensor()], [tensor(norm=3.0)])}


def test_a_gradient_whose_backward_is_finite_is_named(tmp_path):
    backward = {"Cell.fc.Dense.backward.0": {"input": [tensor()], "output": [tensor(norm=4.0)]}}
    gradients = {"Cell.fc.Dense.parameters_grad.0": {"weight": [tensor(**NAN)]}}
    update = {"Functional.add.0.forward": forward([tensor(**NAN)], [tensor(**NAN)])}
    write(tmp_path / "step0" / "rank", {**FORWARD, **backward, **gradients, **update})
    said = probe.first_nan(probe.open(tmp_path)).sentence
    assert said.startswith(
        "Cell.fc.Dense.parameters_grad.0 holds NaN/Inf, though the backwards in its Cell are finite"
    )


@pytest.mark.parametrize("comes_first", [True, False])
def test_the_backward_that_made_it_is_named_wherever_the_gradient_stands(tmp_path, comes_first):
    backward = {"Functional.dense.0.backward": {"input": [tensor()], "output": [tensor(**NAN)]}}
    gradients = {"Cell.fc.Dense.parameters_grad.0": {"weight": [tensor(**NAN)]}}
    parts = [gradients, backward] if comes_first else [backward, gradients]
    data = {
        "Functional.dense.0.forward": forward([tensor()], [tensor(norm=3.0)]),
        **parts[0],
        **parts[1],
    }
    write(tmp_path / "step0" / "rank", data)
    assert probe.first_nan(probe.open(tmp_path)).name == "Functional.dense.0.backward"


def test_close_to_overflow_is_said(tmp_path, capsys):
    write(
        tmp_path / "step0" / "rank",
        {"Tensor.f.0.forward": forward([], [tensor(dtype="Float16", Max=65000.0)])},
    )
    assert main(["nan", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "no call makes NaN/Inf in step 0: 1 forward and 0 backward entries" in said.out
    assert "close to overflow: Tensor.f.0.forward.output.0: 65000 of 65504 (Float16)" in said.err


def ranks(folder, count=4, **changes):
    """Write a step of some ranks; ``changes`` maps "rank1" to a function that changes its entries."""
    for rank in range(count):
        weights = {f"w{i}": tensor(norm=i + 1.0) for i in range(4)}
        data = {
            "Functional.f.0.forward": forward(
                [tensor(norm=10.0 + rank)], [tensor(norm=20.0 + rank)]
            ),
            "Cell.fc.Dense.forward.0": {
                **forward([tensor(norm=10.0 + rank)], [tensor(norm=5.0 + rank)]),
                "parameters": weights,
            },
            "Distributed.all_reduce.0.forward": forward(
                [tensor(norm=5.0 + rank)], [tensor(norm=40.0)]
            ),
            "Distributed.broadcast.0.forward": forward(
                [tensor(norm=5.0 + rank)], [tensor(norm=41.0)]
            ),
        }
        changes.get(f"rank{rank}", lambda data: None)(data)
        write(folder / "step0" / f"rank{rank}", data)
    return probe.open(folder)


def other_weight(data):
    data["Cell.fc.Dense.forward.0"]["parameters"]["w2"] = tensor(norm=77.0)


def other_result(data):
    data["Distributed.all_reduce.0.forward"]["output"] = [tensor(norm=39.0)]


def one_call_less(data):
    del data["Distributed.broadcast.0.forward"]


def same_batch(data):
    data["Functional.f.0.forward"]["input_args"] = [tensor(norm=10.0)]


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (
            other_weight,
            "parameter",
            "fc.w2 should be the same on all ranks: ranks 0-1, 3 agree, rank 2 does not",
        ),
        (
            other_result,
            "collective",
            "all_reduce.0.forward should give all ranks the same: ranks 0-1, 3 agree, rank 2",
        ),
        (
            one_call_less,
            "sequence",
            "from Distributed.broadcast.0.forward on: ranks 0-1, 3 agree, rank 2 does not",
        ),
        (same_batch, "data", "ranks 0, 2 are given the same batch"),
    ],
)
def test_the_rank_that_is_off_is_named(tmp_path, change, kind, text, capsys):
    (finding,) = probe.check_ranks(ranks(tmp_path, rank2=change))
    assert finding.kind == kind
    assert text in finding.sentence
    assert finding.ranks == [2]
    assert main(["ranks", str(tmp_path)]) == 1
    assert text in capsys.readouterr().out


def test_two_ranks_that_disagree_are_found(tmp_path):
    (finding,) = probe.check_ranks(ranks(tmp_path, 2, rank1=other_result))
    assert (finding.kind, finding.name) == ("collective", "Distributed.all_reduce.0.forward")


def test_ranks_that_agree(tmp_path, capsys):
    assert probe.check_ranks(ranks(tmp_path)) == []
    assert main(["ranks", str(tmp_path), "--jobs", "1"]) == 0
    looked = "steps 0, ranks 0-3, 4 parameters compared, 2 collectives"
    assert capsys.readouterr().out == f"the ranks agree: {looked}\n"


def test_an_outlier_among_many_ranks(tmp_path):
    def far(data):
        data["Functional.f.0.forward"]["output"] = [tensor(norm=900.0)]

    findings = probe.check_ranks(ranks(tmp_path, 9, rank7=far))
    assert [(item.kind, item.ranks) for item in findings] == [("outlier", [7])]


def test_an_outlier_is_found_by_its_name_where_ranks_make_other_calls(tmp_path):
    def far_and_earlier(data):
        before = dict(data)
        data.clear()
        data["Functional.first.0.forward"] = forward(
            [tensor(norm=1e39)], [tensor(norm=1e39)]
        )  # beyond float32
        data.update(before)
        data["Functional.f.0.forward"]["output"] = [tensor(norm=900.0)]

    findings = probe.check_ranks(ranks(tmp_path, 9, rank7=far_and_earlier))
    assert [(item.kind, item.name, item.ranks) for item in findings] == [
        ("sequence", "Functional.first.0.forward", [7]),
        ("outlier", "Functional.f.0.forward", [7]),
    ]


def test_one_rank_has_nothing_to_be_compared_with(tmp_path):
    with pytest.raises(UsageError, match="one rank"):
        probe.check_ranks(ranks(tmp_path, 1))


NAME = "Cell.fc.Dense.parameters_grad.0"


def steps(folder, norms):
    for step, norm in enumerate(norms):
        entry = {} if norm is None else {NAME: {"weight": [tensor(norm=norm)]}}
        write(folder / f"step{step}" / "rank", {"Tensor.f.0.forward": forward([], []), **entry})


@pytest.mark.parametrize(
    ("norms", "said"),
    [
        ([1.0, 1.1, 0.9, 1.05, 1.0, 0.95, 30.0, 1.0], "spike: 30 in step 6"),
        ([1.0, 3.0, 9.0, 27.0, 81.0, 243.0], "growing: from 1 to 81"),
        ([1.0, 1.1, 1.2, 1.2, 1.2, 1.2], "unchanged: 1.2 in 3 recorded steps"),
        ([1.0, 1.1, 0.9, None, 1.0, 1.2], "missing: not recorded in step 3"),
        ([1.0, math.nan], "NaN/Inf: nan in step 1"),
        ([1.0, 1.1, 0.9, 1.05, 1.0, 0.95], ""),
    ],
)
def test_trends(tmp_path, norms, said, capsys):
    steps(tmp_path, norms)
    assert main(["trend", str(tmp_path)]) == int(bool(said))
    out = capsys.readouterr().out
    assert f"{NAME}.weight.0" in out
    assert (f"{NAME}.weight.0: {said}" in out) if said else ("look here" not in out)


def test_gradients_whose_numbers_go_on_over_the_steps_are_one_series(tmp_path, capsys):
    """msprobe 26.0 counts parameters_grad over the whole run."""
    for step, norm in enumerate((1.0, 1.1, 0.9, 1.05, 1.0, 900.0)):
        data = {
            f"Module.fc.Linear.parameters_grad.{2 * step + use}": {
                "weight": [tensor(norm=norm + use)]
            }
            for use in (0, 1)
        }
        write(tmp_path / f"step{step}" / "proc7", data)
    assert main(["trend", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "Module.fc.Linear.parameters_grad.0.weight" in out
    assert "Module.fc.Linear.parameters_grad.1.weight" in out
    assert "Module.fc.Linear.parameters_grad.2" not in out


PARAMETER, RELU = "Cell.fc.Dense.forward.0", "Functional.relu.0.forward"


@pytest.mark.parametrize(
    ("entry", "series", "like", "said"),
    [
        (
            NAME,
            [{"norm": 1e-3}] * 4 + [{"norm": 1e-8}],
            "parameters_grad",
            "vanishing: no more than 4.1e-09",
        ),
        (
            NAME,
            [{"norm": 1.0 + i} for i in range(4)] + [{"norm": 0.0}],
            "_grad",
            "missing: a gradient of zeros",
        ),
        (
            PARAMETER,
            [{"norm": 1.0 + i / 9} for i in range(5)] + [{"norm": 40.0}],
            "weight",
            "update ratio: from 1.4",
        ),
        (
            PARAMETER,
            [{"norm": 1.0 + i / 4} for i in range(6)],
            "parameters",
            "weight drift: 2 in step 4, 1 at first",
        ),
        (
            RELU,
            [{"norm": 0.0, "Max": 0.0, "Min": 0.0}] * 5,
            "output",
            "dead units: 100.0% zeros in 5 recorded steps",
        ),
        (
            RELU,
            [{"norm": 1.0 + i, "zero_count": 6} for i in range(5)],
            "output",
            "dead units: 100.0% zeros",
        ),
        (RELU, [{"norm": 1.0 + i, "zero_count": 3} for i in range(5)], "output", ""),
        (
            RELU,
            [{"dtype": "Float16", "Max": 60000.0}],
            "output",
            "saturation: 92% of the largest number of its dtype",
        ),
        (RELU, [{"dtype": "Float32", "Max": 60000.0}], "output", ""),
    ],
)
def test_rules_that_need_more_than_norms(tmp_path, entry, series, like, said, capsys):
    for step, numbers in enumerate(series):
        record = tensor(**numbers)
        parts = {"weight": [record]} if entry == NAME else forward([], [record])
        if entry == PARAMETER:
            parts = {**forward([], []), "parameters": {"weight": record}}
        write(tmp_path / f"step{step}" / "rank", {entry: parts})
    assert main(["trend", str(tmp_path), "--like", like]) == int(bool(said))
    out = capsys.readouterr().out
    assert (f": {said}" in out) if said else ("look here" not in out)


def test_one_layer_apart_from_the_others_of_its_kind(tmp_path, capsys):
    for step in range(5):
        norms = [1.0 + layer / 100 + step / 10 for layer in range(8)]
        norms[3] *= 50 if step == 4 else 1
        data = {
            f"Cell.blocks.{i}.fc.Dense.parameters_grad.0": {"weight": [tensor(norm=x)]}
            for i, x in enumerate(norms)
        }
        write(tmp_path / f"step{step}" / "rank", data)
    assert main(["trend", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert (
        "Cell.blocks.3.fc.Dense.parameters_grad.0.weight.0: one layer apart: 71.5 in step 4, about 1.4"
        in out
    )
    assert "threshold 6; OLMo issue 266" in out
    assert out.count("one layer apart") == 1


def test_trend_as_csv_and_with_other_rules(tmp_path, capsys):
    steps(tmp_path, [1.0, 1.1, 0.9, 1.05, 1.0, 0.95, 30.0])
    assert main(["trend", str(tmp_path), "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == f"{NAME}.weight.0,,0,1.0"
    (tmp_path / "rules.json").write_text('{"spike": 1e9}')
    assert main(["trend", str(tmp_path), "--rules", str(tmp_path / "rules.json")]) == 0
    (tmp_path / "rules.json").write_text('{"spikes": 1}')
    assert main(["trend", str(tmp_path), "--rules", str(tmp_path / "rules.json")]) == 2
    assert main(["trend", str(tmp_path), "--stat", "size"]) == 2

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Each cause of a wrong or empty answer, in the smallest dump that shows it."""

from __future__ import annotations

import numpy as np
import pytest

import probe
from probe.__main__ import main
from tests.reading.builders import forward, record, value, write


def tensor(seed=0, shape=(3, 4), scale=1.0, md5=False):
    return record((np.random.RandomState(seed).randn(*shape) * scale).astype("f"), md5)


@pytest.fixture
def compare(tmp_path):
    """Compare steps of entries: each argument is a list of {name: entry}, one for each step."""

    def run(a, b, stacks=None, trees=None, headers=({}, {}), numbers=range(9), **options):
        for side, steps, header in (("a", a, headers[0]), ("b", b, headers[1])):
            for step, data in zip(numbers, steps):
                folder = tmp_path / side / f"step{step}" / "rank0"
                write(folder, data, (stacks or {}).get(side), (trees or {}).get(side), **header)
        return probe.compare(tmp_path / "a", tmp_path / "b", **options)

    return run


def cell(inputs, outputs, **parameters):
    return {**forward(inputs, outputs), "parameters": parameters}


def test_a_change_below_the_tolerance_that_grows_is_named_at_its_root(compare):
    """Step 0 agrees in all bits, so that there is no noise."""
    x, w = tensor(1), tensor(2)

    def step(weight, y, loss):
        return {
            "Cell.fc.Dense.forward.0": cell([x], [y], weight=weight),
            "Functional.exp.0.forward": forward([y], [loss]),
        }

    same = step(w, tensor(3), tensor(4))
    little = {**w, "Norm": w["Norm"] * (1 + 5e-6), "Max": w["Max"] * (1 + 5e-6)}
    near = {**tensor(3), "Max": tensor(3)["Max"] * (1 + 8e-6)}
    found = compare([same, same], [same, step(little, near, tensor(4, scale=1.01))])
    assert found.status == 1
    assert (found.first.step, found.first.cell) == (1, "fc.Dense")
    assert found.first.kind == "optimizer"


@pytest.mark.parametrize("between", [0, 2])
@pytest.mark.parametrize("is_removed", [False, True])
def test_a_missing_gradient_is_followed_to_the_call_at_which_it_ends(compare, between, is_removed):
    x, g = tensor(1), tensor(9)

    def net(stopped):
        data = {"Functional.relu.0.forward": forward([x], [tensor(2)])}
        if stopped:
            data["Functional.stop_gradient.0.forward"] = forward([tensor(2)], [tensor(2)])
        place = tensor(2)
        for number in range(between):
            data[f"Functional.tanh.{number}.forward"] = forward([place], [tensor(3 + number)])
            place = tensor(3 + number)
        data["Functional.mul.0.forward"] = forward([tensor(7), place], [tensor(8)])
        data["Functional.mul.0.backward"] = {
            "input": [g],
            "output": [g, None if stopped else tensor(10)],
        }
        for number in reversed(range(between)):
            if not stopped:
                data[f"Functional.tanh.{number}.backward"] = {
                    "input": [tensor(10)],
                    "output": [tensor(10)],
                }
        if not stopped:
            data["Functional.relu.0.backward"] = {"input": [tensor(10)], "output": [tensor(11)]}
        return data

    sides = [net(False)], [net(True)]
    first = compare(*(reversed(sides) if is_removed else sides)).first
    assert (first.kind, first.name) == ("calls", "Functional.stop_gradient.0.forward")
    assert (
        f"gets no gradient in {'AB'[not is_removed]}, and one in {'AB'[is_removed]}"
        in first.sentence
    )


def test_a_state_that_the_forward_changes_is_an_output(compare):
    def step(momentum, mean):
        call = forward([tensor(1), tensor(5)], [tensor(2)])
        call["attributes"] = {"momentum": value(momentum)}
        return {
            "Primitive.bn.BatchNorm.0.forward": call,
            "Cell.bn.BatchNorm2d.forward.0": cell(
                [tensor(1)], [tensor(2)], gamma=tensor(5), moving_mean=mean
            ),
        }

    tree = {"Primitive.bn.BatchNorm.0.forward": "Cell.bn.BatchNorm2d.forward.0"}
    assert tree
    first = compare([step(0.9, tensor(6))], [step(0.5, tensor(6, scale=3.0))]).first
    assert first.cell == "bn.BatchNorm2d" or first.name.endswith("BatchNorm.0.forward")
    assert "momentum" in first.sentence or "moving_mean" in first.sentence


def test_one_parameter_that_changes_between_the_steps_is_no_optimizer(compare):
    def step(scale):
        parameters = {f"p{number}": tensor(number) for number in range(8)}
        parameters["p3"] = tensor(3, scale=scale)
        return {
            "Cell.fc.Dense.forward.0": cell([tensor(20)], [tensor(21, scale=scale)], **parameters)
        }

    first = compare([step(1.0), step(1.0)], [step(1.0), step(1.5)]).first
    assert (first.kind, first.place, first.step) == ("parameter", "parameters.p3", 1)
    assert "changed between the optimizer and the next forward" in first.sentence


@pytest.mark.parametrize("count", [1, 8])
def test_parameters_that_differ_after_steps_that_are_not_compared_tell_that(compare, count):
    def step(scale):
        parameters = {
            f"p{number}": tensor(number, scale=scale if number < count else 1.0)
            for number in range(8)
        }
        return {"Cell.fc.Dense.forward.0": cell([tensor(20)], [tensor(21)], **parameters)}

    steps = ([step(1.0), step(1.0)], [step(1.0), step(1.5)])
    first = compare(*steps, numbers=(2, 35)).first
    assert (first.kind, first.step, first.is_uncompared) == ("parameter", 35, True)
    assert first.sentence.startswith("the steps between 2 and 35 are not compared, and ")
    following = compare(*steps, numbers=(2, 3)).first
    assert not following.is_uncompared
    assert "not compared" not in following.sentence


def test_another_output_of_the_same_call_is_wiring(compare):
    """``y[0]`` for ``y[-1]``: the call that made both agrees."""
    outputs = [tensor(2), tensor(3), tensor(4)]

    def net(place):
        return {
            "Functional.split.0.forward": forward([tensor(1)], outputs),
            "Functional.tanh.0.forward": forward([outputs[place]], [tensor(10 + place)]),
        }

    first = compare([net(-1 + 3)], [net(0)]).first
    assert (first.kind, first.name, first.place) == (
        "wiring",
        "Functional.tanh.0.forward",
        "input.0",
    )
    assert first.why == "the input is another output of the same call"
    assert first.sentence.endswith(
        "input 0, is another output of Functional.split.0.forward in B than in A"
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_transposed_weight_has_other_bits_whatever_its_mean(compare, seed):
    weight = np.random.RandomState(seed).randn(64, 64).astype("f")
    turned = np.ascontiguousarray(weight.T)
    off = {**record(turned, True), "Mean": record(turned, True)["Mean"] * (1 + 1e-7)}

    def net(w, y):
        return {
            "Primitive.matmul.MatMul.0.forward": forward([tensor(1, md5=True), w], [y]),
            "Cell.fc.Dense.forward.0": cell([tensor(1, md5=True)], [y], weight=w),
        }

    first = compare(
        [net(record(weight, True), tensor(3, md5=True))], [net(off, tensor(4, md5=True))]
    ).first
    assert (first.kind, first.place) == ("parameter", "parameters.weight")
    assert "same inputs" not in first.sentence


def test_an_attribute_of_a_primitive_is_named(compare):
    def net(epsilon, y):
        return {
            "Primitive.norm.LayerNorm.0.forward": {
                **forward([tensor(1)], [y]),
                "attributes": {"epsilon": value(epsilon)},
            }
        }

    first = compare([net(1e-5, tensor(2))], [net(1e-2, tensor(2, scale=1.1))]).first
    assert (first.kind, first.place) == ("argument", "attributes.epsilon")
    assert "attribute epsilon: 1e-05 in A, 0.01 in B" in first.sentence


def test_a_keyword_argument_has_its_name(compare):
    def net(approximate, y):
        return {
            "Functional.gelu.0.forward": forward([tensor(1)], [y], approximate=value(approximate))
        }

    first = compare([net("none", tensor(2))], [net("tanh", tensor(2, scale=1.1))]).first
    assert (first.kind, first.place) == ("argument", "kwargs.approximate")
    assert "argument approximate: 'none' in A, 'tanh' in B" in first.sentence


def test_a_parameter_of_the_model_itself_is_named(compare):
    def net(scale):
        call = forward([tensor(1), tensor(2, scale=scale)], [tensor(3, scale=scale)])
        return {
            "Tensor.add.0.forward": {
                **call,
                "model_parameters": {"cls_token": tensor(2, scale=scale)},
            }
        }

    first = compare([net(1.0)], [net(1.5)]).first
    assert first.kind == "parameter"
    assert first.sentence.startswith("cls_token of the model differs before its first use")


def test_a_number_and_a_tensor_of_this_number_are_one_thing(compare):
    number = record(np.full((), 2.0, "f"), False)
    a = {"Tensor.div.0.forward": forward([tensor(1), value(2.0)], [tensor(2)])}
    b = {"Tensor.div.0.forward": forward([tensor(1), number], [tensor(2)])}
    assert compare([a], [b]).ok
    b = {"Tensor.div.0.forward": forward([tensor(1), number], [tensor(2, scale=1.5)])}
    assert not compare([a], [b]).ok


def test_calls_of_one_line_are_partners_where_another_line_was_left_out(compare):
    """Else a call would be paired with a later one, and each would follow from the other."""
    names = [f"Tensor.add.{number}.forward" for number in range(3)]

    def net(lines):
        data, place = {}, tensor(0)
        for number, line in enumerate(lines):
            data[names[number]] = forward(
                [place, tensor(30 + line)], [tensor(50 + line + 7 * len(lines))]
            )
            place = tensor(50 + line + 7 * len(lines))
        data["Functional.tanh.0.forward"] = forward([place], [tensor(99, scale=len(lines))])
        frames = {
            str(n): [[names[n]], [f"File net.py, line {line}, in construct, \n x = x + f{line}"]]
            for n, line in enumerate(lines)
        }
        return data, frames

    (a, stack_a), (b, stack_b) = net([1, 2, 3]), net([2, 3])
    found = compare([a], [b], {"a": stack_a, "b": stack_b})
    assert (found.first.kind, found.first.line) == ("calls", 1)


def test_a_rule_changes_the_verdicts_of_its_tensors_alone(compare):
    """Rounding of a sum that is zero stays "near zero"."""
    zero = {**tensor(3, scale=1e-9), "Mean": 0.0}
    other = {**tensor(4, scale=1e-9), "Mean": 0.0}
    a = {"Functional.sub.0.forward": forward([tensor(1)], [zero]), "Functional.softmax.0.forward": forward([tensor(5)], [tensor(6)])}  # fmt: skip # noqa: E501
    b = {**a, "Functional.sub.0.forward": forward([tensor(1)], [other])}
    plain = {row["call_b"]: row["verdict"] for row in compare([a], [b]).table()}
    ruled = compare([a], [b], rules=[("softmax", "rel_l2 <= 0.5")])
    assert {row["call_b"]: row["verdict"] for row in ruled.table()} == plain
    assert plain["Functional.sub.0.forward"] == "near zero"


def test_statistics_say_that_they_cannot_tell_a_permutation(compare):
    a = {"Functional.matmul.0.forward": forward([tensor(1)], [tensor(2)])}
    b = {"Functional.matmul.0.forward": forward([tensor(1)], [tensor(3)])}
    assert "only summary_mode md5 or task tensor can tell" in compare([a], [b]).first.sentence


def test_the_rule_that_fired_is_in_the_json(tmp_path, compare, capsys):
    a = {"Functional.exp.0.forward": forward([tensor(1)], [tensor(2)])}
    b = {"Functional.exp.0.forward": forward([tensor(1)], [tensor(3)])}
    compare([a], [b])
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json", "-"]) == 1
    assert '"why": "the inputs agree, the output does not"' in capsys.readouterr().out


def test_exchanged_inputs_of_a_cell_that_is_called_twice_are_wiring(compare):
    """The calls of a Cell in it are not in another order: theirs is the order of the Cell around them."""
    made = [tensor(2), tensor(3)]

    def net(order):
        data, frames, tree = {}, {}, {}
        for number, name in enumerate(("tanh", "sin")):
            data[f"Functional.{name}.0.forward"] = forward([tensor(1)], [made[number]])
        for number, line in enumerate(("real = critic(x)", "made = critic(y)")):
            x, hidden = made[order[number]], tensor(4 + order[number])
            outer, inner = (
                f"Cell.critic.Critic.forward.{number}",
                f"Cell.critic.fc.Dense.forward.{number}",
            )
            call = f"Primitive.matmul.MatMul.{number}.forward"
            data[call] = forward([x, tensor(9)], [hidden])
            data[inner] = cell([x], [hidden], weight=tensor(9))
            data[outer] = forward([x], [hidden])
            tree.update({call: inner, inner: outer, outer: None})
            frames[str(2 * number)] = [
                [outer],
                [f"File net.py, line {number + 5}, in construct, \n {line}"],
            ]
            frames[str(2 * number + 1)] = [
                [inner, call],
                ["File net.py, line 1, in construct, \n self.fc(x)"],
            ]
        data["Functional.sub.0.forward"] = forward(
            [tensor(4 + order[0]), tensor(4 + order[1])], [tensor(7 + order[0])]
        )
        return data, frames, tree

    (a, stack_a, tree_a), (b, stack_b, tree_b) = net([0, 1]), net([1, 0])
    first = compare([a], [b], {"a": stack_a, "b": stack_b}, {"a": tree_a, "b": tree_b}).first
    assert (first.kind, first.name) == ("wiring", "Cell.critic.Critic.forward.0")
    assert first.sentence.endswith(
        "comes from Functional.tanh.0.forward in A, from Functional.sin.0.forward in B"
    )


def test_another_level_is_no_change_of_the_training(compare):
    """Level L0 records no API: that B has more calls is no finding, and hides none."""
    cells = {
        f"Cell.fc{number}.Dense.forward.0": cell([tensor(number)], [tensor(number + 1)])
        for number in range(3)
    }
    calls = {
        f"Functional.relu.{n}.forward": forward([tensor(n)], [tensor(n + 1)]) for n in range(9)
    }
    levels = {"level": "L0"}, {"level": "mix"}
    found = compare([cells], [{**calls, **cells}], headers=levels)
    assert found.ok
    assert "harmless" not in str(found)
    assert "A has level L0, B has mix: 9 calls of B are left out" in str(found)
    faulty = {**cells, "Cell.fc2.Dense.forward.0": cell([tensor(2)], [tensor(3, scale=1.5)])}
    assert (
        compare([cells], [{**calls, **faulty}], headers=levels).first.name
        == "Cell.fc2.Dense.forward.0"
    )


def test_two_levels_without_a_call_in_common_cannot_be_compared(compare):
    cells = {f"Cell.fc{n}.Dense.forward.0": cell([tensor(n)], [tensor(n + 1)]) for n in range(3)}
    calls = {
        f"Functional.relu.{n}.forward": forward([tensor(n)], [tensor(n + 1)]) for n in range(3)
    }
    assert compare([cells], [calls], headers=({"level": "L0"}, {"level": "L1"})).status == 2


def test_one_harmless_change_in_many_steps_is_one_line(compare):
    a = {"Functional.relu.0.forward": forward([tensor(1)], [tensor(2)])}
    b = {"Functional.ones.0.forward": forward([], [tensor(3)]), **a}
    lines = str(compare([a] * 101, [b] * 101)).splitlines()
    # no recorded call uses it: it may be the result
    assert [line for line in lines if line.startswith("changed too")] == [
        "changed too: only B has Functional.ones.0.forward, in the model or the script"
    ]


def test_one_cause_in_many_steps_is_one_origin_and_few_lines(compare):
    def step(scale):
        return {
            "Functional.exp.0.forward": forward([tensor(1)], [tensor(2, scale=scale)]),
            "Functional.sin.0.forward": forward([tensor(2, scale=scale)], [tensor(3, scale=scale)]),
        }

    found = compare([step(1.0)] * 101, [step(1.5)] * 101)
    assert [origin.name for origin in (*found.origins, *found.later)] == [
        "Functional.exp.0.forward"
    ] * 2
    assert len(str(found).splitlines()) < 15


@pytest.mark.parametrize("has_arrays", [False, True])
def test_a_batch_whose_rows_are_reordered_says_so(tmp_path, has_arrays):
    batch = np.random.RandomState(1).randn(4, 3).astype("f")
    for side, data in (("a", batch), ("b", batch[::-1].copy())):
        given = {**record(data, True), "data_name": "x.npy"} if has_arrays else record(data, True)
        net = {"Functional.matmul.0.forward": forward([given], [tensor(ord(side), md5=True)])}
        folder = write(tmp_path / side, net, dump_data_dir="x" if has_arrays else None)
        (folder / "dump_tensor_data").mkdir()
        np.save(folder / "dump_tensor_data" / "x.npy", data)
    first = probe.compare(tmp_path / "a", tmp_path / "b").first
    assert first.kind == "data"
    assert first.sentence.startswith("the batch differs: Functional.matmul.0.forward, input 0")
    said = (
        "B has the same rows in another order"
        if has_arrays
        else "perhaps the same rows in another order"
    )
    assert said in first.sentence


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_constant_that_calls_made_is_linked_to_them(compare, is_elsewhere):
    """``ops.ones(...) * 0.9``, used after other calls: the change of the number is the only origin."""

    def net(factor):
        ones, made = (record(np.full((3, 4), number, "f"), False) for number in (1, factor))
        order = 1 if is_elsewhere else 0
        return {
            "Functional.ones.0.forward": forward([value((3, 4))], [ones]),
            **({"Functional.tanh.0.forward": forward([tensor(1)], [tensor(2)])} if order else {}),
            "Tensor.mul.0.forward": forward([ones, value(factor)], [made]),
            "Functional.sin.0.forward": forward([tensor(3)], [tensor(4)]),
            "Functional.add.0.forward": forward([tensor(5), made], [tensor(6, scale=factor)]),
        }

    found = compare([net(0.5)], [net(0.75)])
    assert [(origin.kind, origin.name) for origin in found.origins] == [
        ("argument", "Tensor.mul.0.forward")
    ]
    dump = probe.open(str(found.paths[0]))[0]
    assert dump["Functional.add.0.forward"].inputs["1"].producer.name == "Tensor.mul.0.forward"
    assert dump["Tensor.mul.0.forward"].inputs["0"].producer.name == "Functional.ones.0.forward"


def test_numbers_of_arguments_have_the_digits_that_matter(compare):
    def net(momentum, y):
        call = forward([tensor(1)], [y])
        return {
            "Primitive.bn.BatchNorm.0.forward": {
                **call,
                "attributes": {"momentum": value(momentum)},
            }
        }

    first = compare([net(1 - 0.9, tensor(2))], [net(0.5, tensor(3))]).first
    assert first.sentence.endswith("attribute momentum: 0.1 in A, 0.5 in B")
    first = compare([net(0.1 + 1e-9, tensor(2))], [net(0.1, tensor(3))]).first
    assert first.sentence.endswith("attribute momentum: 0.100000001 in A, 0.1 in B")


def test_exchanged_inputs_behind_views_of_one_name_are_told_by_their_cells(compare):
    """``q = self.key(x)``: the views after it have the same names on both sides."""
    made = {"query": tensor(2), "key": tensor(3)}

    def net(first, second):
        data, tree = {}, {}
        for number, part in enumerate((first, second)):
            own, call = (
                f"Cell.{part}.Dense.forward.0",
                f"Primitive.bias_add.BiasAdd.{number}.forward",
            )
            data[call] = forward([tensor(1), tensor(20 + len(part))], [made[part]])
            data[own] = cell([tensor(1)], [made[part]], bias=tensor(20 + len(part)))
            tree.update({call: own, own: None})
        for number, part in enumerate((first, second)):
            view = {**made[part], "shape": [4, 3]}
            data[f"Tensor.reshape.{number}.forward"] = forward([made[part], value(4)], [view])
            data[f"Functional.softmax.{number}.forward"] = forward(
                [view, value(number)], [tensor(30 + number + len(part))]
            )
        return data, tree

    (a, tree_a), (b, tree_b) = net("query", "key"), net("key", "query")
    found = compare([a], [b], trees={"a": tree_a, "b": tree_b})
    assert found.first.kind == "wiring"
    assert (
        "of query.Dense in A" in found.first.sentence
        and "of key.Dense in B" in found.first.sentence
    )


def test_a_frozen_weight_behind_unrecorded_views_is_missing_in_the_optimizer(compare):
    """A GRU cuts its weight into parts: no content tells whose they are, the update does."""

    def net(names):
        call, own = "Primitive.gru_cell.MatMul.0.forward", "Cell.gru.rnn.Cell.forward.0"
        has_gradient = "gru.weight" in names
        gradient = tensor(6) if has_gradient else None
        data = {
            call: forward([tensor(1), tensor(2)], [tensor(3)]),
            own: cell([tensor(1)], [tensor(3)]),
            "Functional.sin.0.forward": forward([tensor(3)], [tensor(4)]),
            "Functional.sin.0.backward": {"input": [tensor(5)], "output": [tensor(7)]},
            "Primitive.gru_cell.MatMul.0.backward": {
                "input": [tensor(7)],
                "output": [tensor(8), gradient],
            },
            "Cell.optimizer.SGD.forward.0": {
                **forward([[tensor(6 if name == "gru.weight" else 9) for name in names]], []),
                "input_kwargs": {
                    "parameters": [value(name) for name in names],
                    "learning_rate": value(0.1),
                },
            },
        }
        tree = {
            call: own,
            "Primitive.gru_cell.MatMul.0.backward": "Cell.gru.rnn.Cell.backward.0",
            own: None,
        }
        return data, tree

    (a, tree_a), (b, tree_b) = net(["gru.weight", "fc.weight"]), net(["fc.weight"])
    first = compare([a], [b], trees={"a": tree_a, "b": tree_b}).first
    assert first.kind == "optimizer"
    assert first.sentence.startswith(
        "gru.weight is missing in the optimizer of B, or without a gradient"
    )

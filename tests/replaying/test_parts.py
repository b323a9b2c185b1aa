# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The parts of `probe replay` by themselves: verdicts on outputs, outputs that fit, gradients, references."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

import probe
from probe.replaying import references
from probe.replaying.calling import CannotReplayError, fill
from probe.replaying.described import CallDescription
from probe.replaying.describing import describe
from probe.replaying.evaluating import Evaluation, longest_sum
from probe.replaying.judging import Operation, ReplayedOutput, judge
from probe.replaying.making import Maker
from tests.replaying.device import ROUNDING, Device

# -- verdicts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recorded", "golden", "here", "verdict", "element"),
    [
        ([1, 2, 3], [1, 2, 3], [1, 2, 3], "ok", []),
        ([1, 9, 3], [1, 2, 3], [1, 2, 3], "wrong", [1]),
        ([1, 9, 3], [1, 2, 3], [1, 9, 3], "ok", []),  # this machine gives it too
        ([1, 2, 3], [1, 2, 3], [1, 9, 3], "ok", []),
        ([1, 9, 8], [1, 9, 3], [1, 2, 8], "ok", []),  # each element by itself
        ([1, 9, 7], [1, 9, 3], [1, 2, 8], "wrong", [2]),
    ],
)
def test_whole_numbers_are_golden_or_those_of_this_machine(
    recorded, golden, here, verdict, element
):
    arrays = (np.array(item, np.int32) for item in (recorded, golden, here))
    found = judge("output.0", ReplayedOutput(next(arrays), "Int32", *arrays), Operation())
    assert (found.verdict, found.element) == (verdict, element)


X = np.linspace(1.0, 2.0, 64)


def verdict(recorded, operation=None, here=None, dtype="Float32"):
    near = X.astype(np.float32) if here is None else here
    return judge(
        "output.0",
        ReplayedOutput(np.asarray(recorded, np.float32), dtype, X, near),
        operation or Operation(),
    ).verdict


@pytest.mark.parametrize(
    ("roundings", "said"),
    [
        (0, "ok"),
        (7, "ok"),
        (20, "worse than expected"),
        (31, "worse than expected"),
        (100, "wrong"),
    ],
)
def test_an_error_counts_in_roundings(roundings, said):
    far = X.copy()
    far[5] *= 1 + roundings * ROUNDING["Float32"]
    assert verdict(far, Operation(elementwise=True)) == said


def test_an_operation_that_only_moves_values_has_no_error():
    far = X.astype(np.float32).copy()
    far[5] = np.nextafter(far[5], np.float32(9))
    golden = X.astype(np.float32).astype(np.float64)
    outcome = ReplayedOutput(far, "Float32", golden, golden.astype(np.float32))
    assert judge("output.0", outcome, Operation(moves=True)).verdict == "wrong"
    assert judge("output.0", outcome, Operation()).verdict == "ok"


@pytest.mark.parametrize(
    ("value", "golden", "here", "said"),
    [
        (np.nan, 1.0, 1.0, "wrong"),
        (np.nan, np.nan, np.nan, "ok"),
        (1.0, np.nan, np.nan, "wrong"),
        (np.inf, 1e39, 1.0, "ok"),
        (np.inf, -1e39, 1.0, "ok"),
        (np.inf, -np.inf, -np.inf, "wrong"),
        (np.nan, 1.0, np.nan, "ok"),
    ],
)
def test_nan_and_inf_are_wrong_where_neither_side_has_them(value, golden, here, said):
    arrays = [np.array([1.0, 2.0, item]) for item in (value, golden, here)]
    outcome = ReplayedOutput(
        arrays[0].astype(np.float32), "Float32", arrays[1], arrays[2].astype(np.float32)
    )
    assert judge("output.0", outcome, Operation()).verdict == said


def test_other_shapes_are_wrong():
    assert verdict(X[:-1]) == "wrong"


# -- the ceiling -----------------------------------------------------------------------------------------------------


def same_kernel(dtype, roundings, operation=None, **more):
    """Return the verdict on an output that is so many roundings off, and that this machine makes too."""
    far = X.copy()
    far[-1] *= 1 + roundings * ROUNDING[dtype]
    outcome = ReplayedOutput(far, dtype, X, far, **{"has_ceiling": True, **more})
    found = judge("output.0", outcome, operation or Operation(elementwise=True))
    return found.verdict, found.is_kernel


@pytest.mark.parametrize(
    ("dtype", "below", "above"),
    [("Float32", 4090, 4100), ("Float16", 32.5, 33.5), ("BFloat16", 32.5, 33.5)],
)
def test_an_error_of_this_machine_too_is_as_expected_up_to_a_ceiling(dtype, below, above):
    assert same_kernel(dtype, below) == ("ok", False)
    assert same_kernel(dtype, above) == ("wrong", True)
    assert same_kernel(dtype, above, has_ceiling=False) == ("ok", False)


@pytest.mark.parametrize(
    ("more", "below", "above"),
    [
        ({"terms_size": 2.0}, 8190, 8200),  # as large as the element
        ({"scale": np.full(64, 4.0)}, 8190, 8200),
        ({"shaken": X * (1 + 2.0**-23 * 1000)}, 4090 + 16000, 4100 + 16000),
    ],
)
def test_the_ceiling_is_higher_for_terms_that_cancel_and_for_inputs_that_count(more, below, above):
    assert same_kernel("Float32", below, **more) == ("ok", False)
    assert same_kernel("Float32", above, **more) == ("wrong", True)


def test_the_ceiling_grows_with_the_root_of_the_terms_of_a_sum():
    operation = Operation(terms=10_000)
    assert same_kernel("Float32", 4190, operation) == ("ok", False)
    assert same_kernel("Float32", 4200, operation) == ("wrong", True)


@pytest.mark.parametrize(
    ("shaken", "has_ceiling", "said"),
    [
        ([1, 2, 3], True, ("wrong", True)),
        ([1, 9, 3], True, ("ok", False)),  # half a rounding of an input moves it
        ([1, 2, 3], False, ("ok", False)),
    ],
)
def test_integers_that_this_machine_makes_too_are_wrong_if_no_rounding_moves_them(
    shaken, has_ceiling, said
):
    recorded, golden, shaken = (np.array(item) for item in ([1, 9, 3], [1, 2, 3], shaken))
    outcome = ReplayedOutput(recorded, "Int32", golden, recorded, shaken, has_ceiling=has_ceiling)
    found = judge("output.0", outcome, Operation())
    assert (found.verdict, found.is_kernel) == said


@pytest.mark.parametrize(
    ("value", "golden", "is_tame", "said"),
    [
        (np.nan, 1.0, True, ("wrong", True)),
        (np.nan, 1.0, False, ("ok", False)),  # something inside may have been too large
        (np.nan, np.nan, True, ("ok", False)),
        (np.inf, 1e39, True, ("ok", False)),
    ],
)
def test_nan_of_this_machine_too_is_wrong_for_small_inputs(value, golden, is_tame, said):
    recorded = np.array([1.0, 2.0, value], np.float32)
    outcome = ReplayedOutput(
        recorded, "Float32", np.array([1.0, 2.0, golden]), recorded, is_tame=is_tame
    )
    found = judge("output.0", outcome, Operation())
    assert (found.verdict, found.is_kernel) == said


# -- calls -----------------------------------------------------------------------------------------------------------


class Calls:
    """The description of a call, and its arrays."""

    def __init__(self):
        self._arrays = []

    def leaf(self, array, dtype="Float32"):
        self._arrays.append(np.asarray(array, np.int32 if dtype.startswith("Int") else np.float32))
        return {"array": str(len(self._arrays) - 1), "dtype": dtype, "shape": list(np.shape(array))}

    def load(self, leaf):
        return self._arrays[int(leaf["array"])]

    def call(self, key, args, expected, **more):
        places = [f"output.{place}" for place in range(len(expected))]
        known = {
            "kwargs": {},
            "attributes": {},
            "unsure": "",
            "expected": expected,
            "places": places,
        }
        return CallDescription(key, args, **{**known, **more})

    def evaluate(self, function, *arguments, **more):
        return Evaluation(
            Maker(function, None, self.call(*arguments, **more), self.load, "")
        ).judge()


@pytest.mark.parametrize(
    ("key", "said"), [("Functional.abs", "worse than expected"), ("Functional.own", "ok")]
)
def test_an_element_that_depends_on_one_element_may_be_less_off(key, said):
    """An unknown operation may be a sum over its input."""
    calls = Calls()
    far = X.copy()
    far[5] *= 1 + 8.7 * ROUNDING["Float32"]
    assert calls.evaluate(ops.abs, key, [calls.leaf(X)], [calls.leaf(far)]).verdict == said


@pytest.mark.parametrize(("index", "said"), [(1, "ok"), (3, "ok"), (0, "wrong")])
def test_of_equal_elements_either_index_is_right(index, said):
    calls = Calls()
    values = calls.leaf([1.0, 5.0, 2.0, 5.0])
    found = calls.evaluate(ops.argmax, "Functional.argmax", [values], [calls.leaf(index, "Int64")])
    assert found.verdict == said


def first_or_stack(parts):
    return ops.stack(parts) if isinstance(parts, list) else parts[0]


def test_a_list_is_tried_as_a_tuple_and_as_a_list_until_the_shapes_fit():
    calls = Calls()
    given = [[calls.leaf([1.0, 2.0]), calls.leaf([3.0, 4.0])]]
    for expected in ([1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]]):
        found = calls.evaluate(first_or_stack, "Functional.f", given, [calls.leaf(expected)])
        assert found.verdict == "ok"


def maker(calls, *expected, **more):
    return Maker(
        ops.abs,
        None,
        calls.call("Functional.abs", [calls.leaf([1.0])], list(expected), **more),
        calls.load,
        "",
    )


@pytest.mark.parametrize(
    ("found", "fits"),
    [
        ([(np.zeros(3), "Float32")], True),
        ([(np.zeros(4), "Float32")], False),
        ([(np.zeros((3, 1)), "Float32")], False),
        ([(np.zeros(3), "Float16")], False),
        ([None], False),
        ([(np.zeros(3), "Float32")] * 2, False),
        ([], False),
    ],
)
def test_outputs_fit_by_number_shape_and_dtype(found, fits):
    calls = Calls()
    assert maker(calls, calls.leaf([1.0, 2.0, 3.0]))._fits(found) is fits


def test_inputs_are_shaken_by_half_a_rounding_of_the_coarsest_output():
    calls = Calls()
    changed = maker(calls, calls.leaf([1.0]), {**calls.leaf([1.0]), "dtype": "Float16"})._shake(X)
    relative = np.abs(changed / X - 1)
    assert (
        0.3 * ROUNDING["Float16"] < relative.min() and relative.max() <= 0.5 * ROUNDING["Float16"]
    )


def test_an_output_without_an_array_cannot_be_judged():
    calls = Calls()
    with pytest.raises(CannotReplayError, match="no output"):
        calls.evaluate(ops.abs, "Functional.abs", [calls.leaf([1.0])], [None])


def test_a_described_value_becomes_what_python_has():
    tree = [
        {"slice": [0, 2, None]},
        {"ellipsis": True},
        {"numpy": "float32", "value": 0.5},
        {"items": {"a": {"array": "x"}}},
        3,
    ]
    made = fill(tree, iter(["tensor"]), str, True)
    assert made == [slice(0, 2, None), ..., np.float32(0.5), {"a": "tensor"}, 3]
    assert type(made[2]) is np.float32
    assert fill({"dtype": "Float32"}, iter(()), lambda dtype: "Float64", True) == ms.float64


@pytest.mark.parametrize(
    ("shapes", "output", "terms"),
    [
        ([(8, 64), (64, 16)], (8, 16), 64),
        ([(32, 10)], (), 320),
        ([(5,), (5,)], (5,), 5),
        ([()], (), 1),
        ([(0, 3)], (0,), 1),
    ],
)
def test_the_longest_sum_that_shapes_allow(shapes, output, terms):
    assert longest_sum(shapes, output) >= terms


# -- descriptions ----------------------------------------------------------------------------------------------------


def described(tmp_path, gradients, named_gradients=None):
    """Describe the backward of a call that has one tensor by its place and one by a name."""
    device, x = Device(tmp_path), X[:4]
    device.forward(
        "Mint.add", [x], [x], "Float32", kwargs={"other": device.tensor("other", x, "Float32")}
    )
    device.backward("Mint.add", [x], [x] * gradients, "Float32")
    if named_gradients:
        device.data["Mint.add.0.backward"]["output_kwargs"] = {
            "other": device.tensor("named", x, "Float32")
        }
    device.write()
    (dump,) = probe.open(tmp_path)
    return describe(dump["Mint.add.0.backward"])


@pytest.mark.parametrize(
    ("named_gradients", "places"),
    [(False, ["output.0"]), (True, ["output.0", "output_kwargs.other"])],
)
def test_gradients_of_tensors_that_have_a_name_are_described_too(tmp_path, named_gradients, places):
    found = described(tmp_path, 1, named_gradients)
    assert found.places == places
    assert len(found.sens) == 1 and all(found.expected)


@pytest.mark.parametrize("gradients", [0, 3])
def test_gradients_that_fit_no_tensors_are_refused(tmp_path, gradients):
    with pytest.raises(CannotReplayError):
        described(tmp_path, gradients)


# -- references ------------------------------------------------------------------------------------------------------


def random(*shape):
    return Tensor(np.random.RandomState(3).randn(*shape).astype(np.float32))


@pytest.mark.parametrize("mode", ["same", "valid", "pad"])
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation"),
    [((2, 2), 1, 1), ((3, 4), 2, 1), ((3, 2), 1, 2), ((4, 4), 3, 1)],
)
def test_a_convolution_is_that_of_mindspore(mode, kernel, stride, dilation):
    x, weight = random(2, 3, 7, 8), random(4, 3, *kernel)
    padding = 1 if mode == "pad" else 0
    found = references.conv2d(x, weight, None, stride, mode, padding, dilation)
    wanted = ops.conv2d(x, weight, None, stride, mode, padding, dilation)
    assert np.allclose(found.asnumpy(), wanted.asnumpy(), atol=1e-5)


def test_a_padding_that_cannot_be_halved_has_its_larger_part_behind():
    assert references._pads((4, 5), (2, 4), (1, 1), (1, 1), "same", 0) == [0, 1, 1, 2]


POOLING = {"kernel_size": [1, 1, 2, 3], "strides": [1, 1, 1, 2]}
SAME = {
    "softmax": (references.softmax, ops.softmax, (random(3, 5),)),
    "log_softmax": (references.log_softmax, ops.log_softmax, (random(3, 5),)),
    "dense": (references.dense, ops.dense, (random(3, 5), random(2, 5), random(2))),
    "addmm": (
        lambda *given: references.addmm(*given, beta=2, alpha=0.5),
        lambda *given: ops.addmm(*given, beta=2, alpha=0.5),
        (random(3, 2), random(3, 5), random(5, 2)),
    ),
    "gelu": (references.gelu, ops.gelu, (random(9),)),
    "gelu, tanh": (
        lambda x: references.gelu(x, "tanh"),
        lambda x: ops.gelu(x, "tanh"),
        (random(9),),
    ),
    "silu": (references._FUNCTIONS["silu"], ops.silu, (random(9),)),
    "layer_norm": (
        lambda x: references.layer_norm(x, (5,), random(5), random(5)),
        lambda x: ops.LayerNorm(epsilon=1e-5)(x, random(5), random(5))[0],
        (random(3, 5),),
    ),
    "cross_entropy": (
        references.cross_entropy,
        ops.cross_entropy,
        (random(3, 5), Tensor([0, 4, -100], ms.int32)),
    ),
    "avg_pool": (
        lambda x: references._avg_pool_primitive(x, attributes=POOLING),
        nn.AvgPool2d((2, 3), (1, 2)),
        (random(1, 2, 5, 7),),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_a_reference_is_the_operation_of_mindspore(name):
    reference, operation, given = SAME[name]
    assert np.allclose(reference(*given).asnumpy(), operation(*given).asnumpy(), atol=1e-4)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The arguments of a call of PyTorch where its partner of MindSpore has them."""

from __future__ import annotations

import pytest

from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.compare.pairing.torch_arguments import fit, spell_dtypes
from tests.reading.builders import dump, forward, named, value

NAME = "Functional.linear.0.forward"


def fitted(theirs, ours, name=("Functional.linear.0.forward", "Mint.linear.0.forward")):
    """Return the entry of PyTorch after it was fitted to ours."""
    dumps = (
        NormalDump(dump({name[0]: theirs}, framework="pytorch")),
        NormalDump(dump({name[1]: ours})),
    )
    spell_dtypes(dumps[0])
    fit(Alignment(*dumps), *dumps)
    return dumps[0].data[name[0]]


def test_keywords_come_to_their_places():
    theirs = forward([named("x")], [named("y")], weight=named("w:4x4"))
    ours = forward([named("x"), named("w:4x4")], [named("y")])
    assert fitted(theirs, ours)["input_args"] == ours["input_args"]


def test_of_two_of_one_size_the_nearer_is_taken():
    theirs = forward([named("b~"), named("a~")], [named("y")])
    ours = forward([named("a"), named("b")], [named("y")])
    assert fitted(theirs, ours)["input_args"] == [named("a~"), named("b~")]


def test_a_plain_value_stays_where_it_is_or_goes():
    theirs = forward([named("x"), value(2), value(3)], [named("y")])
    ours = forward([named("x"), value(2)], [named("y")])
    assert fitted(theirs, ours)["input_args"] == ours["input_args"]


def test_a_tensor_of_another_size_stands_behind():
    theirs = forward([named("x"), named("m:2x2")], [named("y")])
    found = fitted(theirs, forward([named("x"), named("n:5x5")], [named("y")]))
    assert found["input_args"] == [named("x"), None]
    assert list(found["input_kwargs"].values()) == [named("m:2x2")]


def test_parameters_get_the_names_of_the_cell():
    theirs = {
        **forward([named("x")], [named("y")]),
        "parameters": {"weight": named("g:4"), "bias": named("b:4")},
    }
    ours = {
        **forward([named("x")], [named("y")]),
        "parameters": {"gamma": named("g:4"), "beta": named("b:4")},
    }
    found = fitted(
        theirs, ours, ("Module.norm.LayerNorm.forward.0", "Cell.norm.LayerNorm.forward.0")
    )
    assert found["parameters"] == ours["parameters"]


@pytest.mark.parametrize(("shape", "norm"), [([], 3.0), ([1], -3.0)])
def test_the_norm_of_one_element_without_axes_is_none_of_a_sign(shape, norm):
    given = forward([{**named("x"), "shape": shape, "Norm": -3.0, "dtype": "torch.float32"}], [])
    made = NormalDump(dump({NAME: given}))
    spell_dtypes(made)
    (record,) = made.data[NAME]["input_args"]
    assert (record["Norm"], record["dtype"]) == (norm, "Float32")


MODULE = "Module.fc.Linear"


def gradients(inputs, outputs):
    """Return a backward entry: the gradients of the outputs of a module, and of its inputs."""
    return {"input": inputs, "output": outputs}


def fitted_gradients(theirs, ours, called=None):
    """Return the backward entry of PyTorch after it was fitted to ours; ``called`` is the forward of both."""
    called = called or forward([named("in")], [named("out")])
    dumps = (
        NormalDump(
            dump(
                {MODULE + ".forward.0": called, MODULE + ".backward.0": theirs}, framework="pytorch"
            )
        ),
        NormalDump(dump({MODULE + ".forward.0": called, MODULE + ".backward.0": ours})),
    )
    fit(Alignment(*dumps), *dumps)
    return dumps[0].data[MODULE + ".backward.0"]


def test_a_flat_list_of_gradients_gets_the_form_of_the_object_that_was_returned():
    ours = gradients([{"hidden": named("g"), "mask": None}], [])
    found = fitted_gradients(gradients([named("g~")], []), ours)
    assert found["input"] == [{"hidden": named("g~"), "mask": None}]


def test_gradients_of_a_tensor_that_is_returned_twice_are_not_combined():
    ours = gradients([named("g"), [None]], [])
    called = forward([named("in")], [named("out"), [named("out")]])
    found = fitted_gradients(gradients([named("p"), named("q")], []), ours, called)
    assert found["input"] == [{**named("g"), "not_combined": True}, [None]]


def test_a_gradient_that_one_side_alone_has_stays():
    ours = gradients([named("g"), None], [])
    called = forward([named("in")], [named("one"), named("other")])
    found = fitted_gradients(gradients([named("p:3"), named("g~")], []), ours, called)
    assert found["input"] == [named("g~"), None, named("p:3")]


def test_gradients_of_inputs_come_to_the_places_of_the_inputs_that_have_one():
    ours = gradients([named("g")], [named("x"), None, [named("e:3")]])
    theirs = gradients([named("g")], [named("x~"), named("e:3"), named("m:2x2")])
    found = fitted_gradients(theirs, ours)
    assert found["output"] == [named("x~"), None, [named("e:3")], named("m:2x2")]


def test_the_gradient_of_an_input_that_was_returned_is_left_out():
    ours = gradients([named("g")], [named("x"), None])
    called = forward([named("in"), named("mask:2x2")], [named("out"), named("mask:2x2")])
    found = fitted_gradients(gradients([named("g")], [named("x~"), named("m:2x2")]), ours, called)
    assert found["output"] == [named("x~"), None]


def test_a_gradient_of_zeros_is_that_of_an_input_without_use():
    zeros = {**named("z:2x2"), "Max": 0.0, "Min": 0.0, "Mean": 0.0, "Norm": 0.0}
    tiny = {**zeros, "Max": 1e-30}
    ours = gradients([named("g")], [named("x"), None])
    found = fitted_gradients(gradients([named("g")], [named("x~"), zeros, tiny]), ours)
    assert found["output"] == [named("x~"), None, tiny]


@pytest.mark.parametrize("is_returned", [True, False])
def test_a_module_that_returns_its_input_has_no_gradient_of_its_own(is_returned):
    called = forward([named("in")], [named("in" if is_returned else "out")])
    theirs = gradients([named("g")], [named("g")])
    found = fitted_gradients(theirs, gradients([None], [None]), called)
    expected = gradients([None], [None]) if is_returned else theirs
    assert found == expected

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Nested containers: their leaves and places, and the tensors in them taken out and put back."""

from __future__ import annotations

import dataclasses
import logging
from collections import OrderedDict, namedtuple
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from probe.pytree import (
    TensorTree,
    as_outputs,
    is_mapping,
    items_of,
    leaves,
    prune,
    tree_map,
    unflatten,
)
from tests.support.examples import EXAMPLES, MANY

SOME = settings(MANY, max_examples=EXAMPLES // 5)

Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Box:
    content: Any
    label: Any = "box"


class Leaf:
    """Stands for a tensor."""


class LeafList(list):
    """A tensor that is a container too."""


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
)
KEYS = st.text("abc.0", max_size=3)


def containers(inner):
    return (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=3).map(OrderedDict)
        | st.builds(Pair, inner, inner)
        | st.builds(Box, inner, inner)
    )


LEAVES = st.builds(Leaf)
TREES = st.recursive(SCALARS | LEAVES, containers, max_leaves=20)


def plain(value):
    """Return the tree with dicts and lists only, written for these tests."""
    if isinstance(value, Pair):
        return {"first": plain(value.first), "second": plain(value.second)}
    if isinstance(value, Box):
        return {"content": plain(value.content), "label": plain(value.label)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def only_tensors(value):
    """Return a plain tree without everything but tensors, and without containers that are then empty."""
    if isinstance(value, dict):
        named = {
            key: kept for key, item in value.items() if (kept := only_tensors(item)) is not None
        }
        return named or None
    if isinstance(value, list):
        return [kept for item in value if (kept := only_tensors(item)) is not None] or None
    return value if isinstance(value, Leaf) else None


def places(value, place):
    """Yield the place of each leaf of a plain tree, in order."""
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, f"{place}.{key}")
    else:
        yield place


# -- tree_map ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@SOME
@given(TREES)
def test_a_map_that_changes_nothing_gives_dicts_and_lists(tree):
    assert tree_map(lambda leaf, _: leaf, tree) == plain(tree)


@pytest.mark.slow
@SOME
@given(TREES)
def test_every_leaf_is_visited_once_in_order_with_its_place(tree):
    seen = []
    tree_map(lambda leaf, place: seen.append((leaf, place)), tree, "top")
    assert seen == list(zip(leaves(plain(tree)), places(plain(tree), "top")))


@pytest.mark.slow
@SOME
@given(TREES, st.data())
def test_unflatten_puts_back_what_was_numbered(tree, data):
    values = []

    def number(leaf, _):
        values.append(leaf)
        return len(values) - 1

    layout = tree_map(number, tree)
    assert unflatten(layout, values) == plain(tree)
    order = data.draw(st.permutations(range(len(values))))
    assert list(leaves(unflatten(layout, order))) == list(order)


@pytest.mark.slow
@SOME
@given(TREES)
def test_prune_leaves_no_none_and_no_empty_container(tree):
    def contains_nothing(value):
        if isinstance(value, (dict, list)):
            return not value or any(
                map(contains_nothing, value.values() if isinstance(value, dict) else value)
            )
        return value is None

    pruned = prune(plain(tree))
    assert pruned is None or not contains_nothing(pruned)
    kept = [leaf for leaf in leaves(plain(tree)) if leaf is not None]
    assert ([] if pruned is None else list(leaves(pruned))) == kept


@pytest.mark.parametrize(
    "value", [Box, Pair, Leaf, 3, "text", {1, 2}, range(3), b"ab", None], ids=str
)
def test_classes_sets_ranges_and_scalars_are_leaves(value):
    assert items_of(value) is None
    assert tree_map(lambda leaf, place: (leaf, place), value, "x") == (value, "x")


@pytest.mark.parametrize(
    ("value", "is_object"),
    [
        ([], False),
        ((), False),
        ({}, True),
        (OrderedDict(), True),
        (Pair(1, 2), True),
        (Box(1), True),
    ],
    ids=repr,
)
def test_dicts_namedtuples_and_dataclasses_become_objects(value, is_object):
    assert is_mapping(value) == is_object
    assert isinstance(tree_map(lambda leaf, _: leaf, value), dict if is_object else list)


def test_keys_of_equal_text_keep_their_items():
    assert items_of({1: "a", "1": "b"}) == [("1_0", "a"), ("1_1", "b")]


def test_a_value_of_the_leaf_type_is_a_leaf_even_where_it_is_a_container():
    value = [LeafList([1, 2]), [3]]
    assert tree_map(lambda leaf, place: place, value, "x", LeafList) == ["x.0", ["x.1.0"]]


def test_a_field_of_a_dataclass_that_was_deleted_is_none():
    box = Box(1)
    del box.content
    assert tree_map(lambda leaf, _: leaf, box) == {"content": None, "label": "box"}


def cycles():
    items, named, box, pair = [1], {"a": 1}, Box(1, 2), Pair([1], 2)
    items.append(items)
    named["b"] = [named]
    box.label = (box,)
    pair.first.append(pair)
    return [
        (items, [1, None]),
        (named, {"a": 1, "b": [None]}),
        (box, {"content": 1, "label": [None]}),
        (pair, {"first": [1, None], "second": 2}),
    ]


@pytest.mark.parametrize(
    ("value", "expected"), cycles(), ids=["list", "dict", "dataclass", "namedtuple"]
)
def test_a_container_inside_itself_is_none(value, expected):
    assert tree_map(lambda leaf, _: leaf, value) == expected


def test_one_container_at_two_places_is_no_cycle():
    twice = [1]
    assert tree_map(lambda leaf, _: leaf, [twice, {"a": twice}, (twice, twice)]) == [
        [1],
        {"a": [1]},
        [[1], [1]],
    ]


@pytest.mark.parametrize(
    "wrap", [lambda value: [value], lambda value: {"a": value}, Box], ids=["list", "dict", "Box"]
)
def test_of_a_deep_tree_forty_levels_are_kept(wrap):
    value = wrap("the leaf")
    for _ in range(39):
        value = wrap(value)
    assert "the leaf" in list(leaves(tree_map(lambda leaf, _: leaf, value)))
    deeper = list(leaves(tree_map(lambda leaf, _: leaf, wrap(value))))
    assert "the leaf" not in deeper
    for _ in range(5000):  # deeper than Python's own stack
        value = wrap(value)
    assert list(leaves(tree_map(lambda leaf, _: leaf, value))) == deeper


@pytest.mark.parametrize("kind", [list, tuple, dict], ids=lambda kind: kind.__name__)
def test_of_5000_items_the_first_4096_are_recorded_and_a_warning_says_so(caplog, kind):
    caplog.set_level(logging.WARNING, "probe")
    value = {str(i): i for i in range(5000)} if kind is dict else kind(range(5000))
    mapped = tree_map(lambda leaf, place: place, {"in": value}, "x")["in"]
    assert list(leaves(mapped)) == [f"x.in.{i}" for i in range(4096)]
    assert caplog.messages == ["x.in has 5000 items; only the first 4096 are recorded"]


def test_4096_items_are_recorded_without_a_warning(caplog):
    caplog.set_level(logging.WARNING, "probe")
    assert len(tree_map(lambda leaf, _: leaf, list(range(4096)))) == 4096
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("result", "outputs"),
    [
        (1, (1,)),
        ((1, 2), (1, 2)),
        ([1, 2], ([1, 2],)),
        (Pair(1, 2), (Pair(1, 2),)),
        ((), ()),
        (None, (None,)),
    ],
    ids=repr,
)
def test_only_a_plain_tuple_is_several_outputs(result, outputs):
    assert as_outputs(result) == outputs


# -- TensorTree ----------------------------------------------------------------------------------------------------


def holders(trees):
    """Return the plain trees that hold tensors, without all else."""
    return [kept for tree in trees if (kept := only_tensors(plain(tree))) is not None]


@pytest.mark.slow
@SOME
@given(st.lists(TREES, max_size=5), st.dictionaries(KEYS, TREES, max_size=3), st.booleans())
def test_the_tensors_come_out_in_order_and_go_back_to_their_places(values, keywords, is_input):
    tree = TensorTree(Leaf, values, is_input, keywords)
    expected = holders(values)
    named = {
        name: kept
        for name, item in keywords.items()
        if (kept := only_tensors(plain(item))) is not None
    }
    assert tree.tensors == list(leaves([*expected, named]))
    layout = tree.slot_layout
    assert layout.fill(tree.tensors) == expected
    assert layout.fill_keywords(tree.tensors) == named


@pytest.mark.slow
@SOME
@given(st.lists(TREES, max_size=5), st.dictionaries(KEYS, TREES, max_size=3), st.booleans())
def test_every_tensor_has_a_slot_with_its_place(values, keywords, is_input):
    slots = TensorTree(Leaf, values, is_input, keywords).slot_layout.slots
    side = "input" if is_input else "output"
    expected = [
        place for i, kept in enumerate(holders(values)) for place in places(kept, f"{side}.{i}")
    ]
    for name, item in keywords.items():
        kept = only_tensors(plain(item))
        expected += [] if kept is None else places(kept, f"output_kwargs.{name}")
    assert [slot.place for slot in slots] == expected
    assert {slot.is_input for slot in slots} <= {is_input}


def test_places_count_the_arguments_that_hold_tensors():
    values = (1, Leaf(), [2], "x", [None, Leaf(), {"k": Leaf(), "n": 3}], {}, Leaf())
    slots = TensorTree(Leaf, values, is_input=False).slot_layout.slots
    assert [slot.place for slot in slots] == ["output.0", "output.1.0", "output.1.1.k", "output.2"]


def test_more_tensors_than_have_ready_made_slots():
    tree = TensorTree(Leaf, [Leaf() for _ in range(40)], is_input=True)
    assert [slot.place for slot in tree.slot_layout.slots] == [f"input.{i}" for i in range(40)]
    assert tree.slot_layout.is_flat


def test_the_layout_of_5000_tensors_in_a_list_fits_the_tensors(caplog):
    items = [Leaf() for _ in range(5000)]
    tree = TensorTree(Leaf, [items, items[0]], is_input=True)
    assert tree.tensors == [*items[:4096], items[0]]
    assert [slot.place for slot in tree.slot_layout.slots][-2:] == ["input.0.4095", "input.1"]
    assert tree.slot_layout.fill(tree.tensors) == [items[:4096], items[0]]


def test_a_tensor_in_a_cycle_comes_out_once():
    items = [Leaf()]
    items.append(items)
    tree = TensorTree(Leaf, [items], is_input=True)
    assert tree.tensors == items[:1]
    assert tree.slot_layout.fill(tree.tensors) == [items[:1]]


def test_a_layout_holds_no_tensor():
    tree = TensorTree(
        Leaf, [Leaf(), [Leaf(), {"k": Leaf()}]], is_input=True, keywords={"a": [Leaf()]}
    )
    layout = tree.slot_layout
    assert all(isinstance(leaf, int) for leaf in leaves([layout.layout, layout.keywords]))

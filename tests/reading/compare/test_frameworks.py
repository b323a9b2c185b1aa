# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A dump of PyTorch beside one of MindSpore: names, classes, parameters, dtypes and transposed weights."""

from __future__ import annotations

import json

import numpy as np
import pytest

import probe
from tests.reading.builders import forward, tensor, value, write
from tests.reading.dumps.torch import archives

ENDS = ("forward.0", "backward.0")


def torch_tensor(**numbers):
    """Return the record of a tensor of PyTorch."""
    record = tensor(dtype="torch.float32", requires_grad=True, **numbers)
    return {**record, "type": "torch.Tensor"}


def cell(inputs, outputs, **parameters):
    """Return the forward entry of a Cell or a Module."""
    return {**forward(inputs, outputs), "parameters": parameters}


def compare(tmp_path, of_torch, ours, swapped=False, **settings):
    """Compare a dump of PyTorch with one of MindSpore; the golden one is that of PyTorch unless swapped."""
    golden = write(
        tmp_path / "pytorch" / "step0" / "rank", of_torch, framework="pytorch", level="L0"
    )
    mine = write(tmp_path / "mindspore" / "step0" / "rank", ours, level="L0")
    return probe.compare(*((mine, golden) if swapped else (golden, mine)), **settings)


def rows(comparison):
    """Return (call in A, call in B, place) -> verdict."""
    return {
        (row["call_a"], row["call_b"], row["place"]): row["verdict"] for row in comparison.table()
    }


CLASSES = [
    ("Linear", "Dense", {"weight": "weight", "bias": "bias"}),
    ("Linear", "Linear", {"weight": "weight", "bias": "bias"}),
    ("LayerNorm", "LayerNorm", {"weight": "gamma", "bias": "beta"}),
    ("Embedding", "Embedding", {"weight": "embedding_table"}),
    ("Conv2d", "Conv2d", {"weight": "weight", "bias": "bias"}),
    ("BatchNorm2d", "BatchNorm2d", {"weight": "gamma", "bias": "beta"}),
    ("PReLU", "PReLU", {"weight": "w"}),
    ("GELU", "GELU", {}),
    ("ConvTranspose2d", "Conv2dTranspose", {"weight": "weight"}),
    ("Attention", "Attention", {"scale": "scale"}),
]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("of_torch", "ours", "parameters"), CLASSES)
def test_a_module_is_paired_with_its_cell(of_torch, ours, parameters, swapped, tmp_path):
    theirs, mine = f"Module.blocks.0.x.{of_torch}", f"Cell.blocks.0.x.{ours}"
    numbers = {name: float(place + 3) for place, name in enumerate(parameters)}
    left = {
        f"{theirs}.forward.0": cell(
            [torch_tensor()],
            [torch_tensor(norm=9.0)],
            **{name: torch_tensor(norm=numbers[name]) for name in parameters},
        ),
        f"{theirs}.backward.0": {
            "input": [torch_tensor(norm=2.5)],
            "output": [torch_tensor(norm=1.5)],
        },
        f"{theirs}.parameters_grad.0": {
            name: [torch_tensor(norm=numbers[name] / 8)] for name in parameters
        },
    }
    right = {
        f"{mine}.forward.0": cell(
            [tensor()],
            [tensor(norm=9.0)],
            **{parameters[name]: tensor(norm=numbers[name]) for name in parameters},
        ),
        f"{mine}.backward.0": {"input": [tensor(norm=2.5)], "output": [tensor(norm=1.5)]},
        f"{mine}.parameters_grad.0": {
            parameters[name]: [tensor(norm=numbers[name] / 8)] for name in parameters
        },
    }
    comparison = compare(tmp_path, left, right, swapped)
    assert comparison.ok
    found = rows(comparison)
    assert len(found) == 4 + 2 * len(parameters)
    assert {(a, b) for a, b, _ in found} == {
        (f"{mine}.{end}", f"{theirs}.{end}") if swapped else (f"{theirs}.{end}", f"{mine}.{end}")
        for end in (*ENDS, *(["parameters_grad.0"] if parameters else []))
    }
    assert set(found.values()) == {"equal numbers"}


def test_statistics_of_batch_norm_that_pytorch_does_not_record_are_no_difference(tmp_path):
    left = {
        "Module.x.BatchNorm2d.forward.0": cell(
            [torch_tensor()], [torch_tensor()], weight=torch_tensor(norm=3.0)
        )
    }
    moving = {
        "moving_mean": tensor(norm=5.0),
        "moving_variance": tensor(norm=6.0),
        "gamma": tensor(norm=3.0),
    }
    comparison = compare(
        tmp_path, left, {"Cell.x.BatchNorm2d.forward.0": cell([tensor()], [tensor()], **moving)}
    )
    assert comparison.ok
    assert rows(comparison)[
        "Module.x.BatchNorm2d.forward.0", "Cell.x.BatchNorm2d.forward.0", "parameters.gamma"
    ]


def test_a_renamed_module_is_found_by_its_class_and_sizes(tmp_path):
    left = {
        "Module.fc2.Linear.forward.0": cell(
            [torch_tensor()], [torch_tensor()], weight=torch_tensor(norm=3.0)
        )
    }
    right = {"Cell.down.Dense.forward.0": cell([tensor()], [tensor()], weight=tensor(norm=3.0))}
    assert compare(tmp_path, left, right).pairs == {"renamed": 1}


@pytest.mark.parametrize(
    ("torch_dtype", "dtype", "norm", "ok"),
    [
        ("torch.float32", "Float32", 2.00001, True),
        ("torch.float32", "Float32", 2.01, False),
        ("torch.bfloat16", "BFloat16", 2.01, True),
        ("torch.float16", "Float16", 2.001, True),
        ("torch.float64", "Float64", 2.0001, False),
        ("torch.float32", "BFloat16", 2.01, True),
    ],
)
def test_dtypes_have_two_spellings_and_one_tolerance(torch_dtype, dtype, norm, ok, tmp_path):
    left = {
        "Module.x.X.forward.0": cell([torch_tensor()], [{**torch_tensor(), "dtype": torch_dtype}])
    }
    right = {"Cell.x.X.forward.0": cell([tensor()], [tensor(dtype=dtype, norm=norm)])}
    assert compare(tmp_path, left, right).ok is ok


def test_integers_of_two_sizes_are_no_difference_and_are_not_blamed(tmp_path):
    ids = {"Max": 5, "Min": 0, "Mean": None, "Norm": None}
    left = {
        "Module.t.Embedding.forward.0": cell(
            [{**torch_tensor(), **ids, "dtype": "torch.int64"}], [torch_tensor()]
        ),
        "Module.x.GELU.forward.0": cell([torch_tensor()], [torch_tensor(norm=9.0)]),
    }
    right = {
        "Cell.t.Embedding.forward.0": cell(
            [tensor(**{**ids, "dtype": "Int32", "Mean": 2.0, "Norm": 8.0})], [tensor()]
        ),
        "Cell.x.GELU.forward.0": cell([tensor()], [tensor(norm=9.1)]),
    }
    first = compare(tmp_path, left, right).first
    assert (first.kind, first.name, first.place) == (
        "computation",
        "Cell.x.GELU.forward.0",
        "output.0",
    )
    right["Cell.t.Embedding.forward.0"]["input_args"][0]["Max"] = 6
    assert compare(tmp_path / "again", left, right).first.kind == "data"


@pytest.mark.parametrize(("norm", "ok"), [(2.0001, True), (2.0004, False)])
def test_gradients_of_two_frameworks_are_sums_in_other_orders(norm, ok, tmp_path):
    left = {
        "Module.x.PReLU.forward.0": cell([torch_tensor()], [torch_tensor()], weight=torch_tensor()),
        "Module.x.PReLU.parameters_grad.0": {"weight": [torch_tensor()]},
    }
    right = {
        "Cell.x.PReLU.forward.0": cell([tensor()], [tensor()], weight=tensor()),
        "Cell.x.PReLU.parameters_grad.0": {"weight": [tensor(norm=norm)]},
    }
    assert compare(tmp_path, left, right).ok is ok
    right["Cell.x.PReLU.forward.0"]["output"] = [tensor(norm=norm)]
    assert not compare(tmp_path / "forward", left, right).ok


def test_arguments_of_batch_norm_are_found_by_their_numbers(tmp_path):
    names = {"mean": 0.1, "variance": 1.1, "weight": 3.0, "bias": 4.0}
    theirs = {name: torch_tensor(shape=[6], norm=norm) for name, norm in names.items()}
    mine = [tensor(shape=[6], norm=names[name]) for name in ("weight", "bias", "mean", "variance")]
    left = {
        "Functional.batch_norm.0.forward": forward(
            [torch_tensor(), *theirs.values()], [torch_tensor(norm=9.0)]
        )
    }
    right = {"Primitive.bn.BatchNorm.0.forward": forward([tensor(), *mine], [tensor(norm=9.0)])}
    comparison = compare(tmp_path, left, right)
    assert comparison.ok
    assert set(rows(comparison).values()) == {"equal numbers"}


def test_a_sharded_tensor_of_pytorch_is_a_tensor(tmp_path):
    sharded = {
        **torch_tensor(norm=9.0),
        "type": "torch.distributed.tensor.DTensor",
        "placements": [{"Replicate": {}}],
    }
    left = {"Module.x.X.forward.0": cell([torch_tensor()], [sharded])}
    assert compare(tmp_path, left, {"Cell.x.X.forward.0": cell([tensor()], [tensor(norm=9.0)])}).ok
    assert not compare(
        tmp_path / "b", left, {"Cell.x.X.forward.0": cell([tensor()], [tensor(norm=8.0)])}
    ).ok


def test_the_norm_of_a_negative_scalar_is_no_difference(tmp_path):
    numbers = {"shape": [], "Max": -2.0, "Min": -2.0, "Mean": -2.0}
    left = {"Module.x.X.forward.0": cell([torch_tensor()], [torch_tensor(**numbers, norm=-2.0)])}
    right = {"Cell.x.X.forward.0": cell([tensor()], [tensor(**numbers, norm=2.0)])}
    assert compare(tmp_path, left, right).ok


def weights(shape, norm=3.0, end=8.0):
    """Return the entries of a Linear and of a Dense whose weight has another shape."""
    left = {
        "Module.fc.Linear.forward.0": cell(
            [torch_tensor()], [torch_tensor(norm=8.0)], weight=torch_tensor(norm=3.0, shape=[4, 5])
        ),
        "Module.fc.Linear.parameters_grad.0": {"weight": [torch_tensor(norm=4.0, shape=[4, 5])]},
    }
    right = {
        "Cell.fc.Dense.forward.0": cell(
            [tensor()], [tensor(norm=end)], weight=tensor(norm=norm, shape=shape)
        ),
        "Cell.fc.Dense.parameters_grad.0": {"weight": [tensor(norm=4.0, shape=shape)]},
    }
    return left, right


def test_a_transposed_weight_is_told_by_its_shape_and_numbers(tmp_path):
    comparison = compare(tmp_path, *weights([5, 4]))
    assert comparison.ok
    assert [key[2] for key, verdict in rows(comparison).items() if verdict == "transposed"] == [
        "parameters.weight",
        "weight.0",
    ]
    assert "transposed 2" in str(comparison)


def test_a_transposed_weight_of_other_numbers_differs(tmp_path):
    comparison = compare(tmp_path, *weights([5, 4], norm=3.1))
    assert comparison.first.kind == "parameter"


def test_a_weight_of_another_shape_differs(tmp_path):
    comparison = compare(tmp_path, *weights([5, 5]))
    assert (comparison.first.kind, comparison.first.place) == ("parameter", "parameters.weight")


def test_a_transposed_weight_whose_call_differs_is_in_the_sentence(tmp_path):
    first = compare(tmp_path, *weights([5, 4], end=8.1)).first
    assert first.kind == "computation"
    assert "its weight is the transpose of A's" in first.sentence


def test_within_one_framework_a_transposed_weight_is_no_agreement(tmp_path):
    left, right = weights([5, 4])
    left = json.loads(
        json.dumps(left)
        .replace("Module.fc.Linear", "Cell.fc.Dense")
        .replace("torch.float32", "Float32")
    )
    a, b = write(tmp_path / "a", left), write(tmp_path / "b", right)
    assert "transposed" not in {row["verdict"] for row in probe.compare(a, b).table()}


ARRAYS = [
    ("transposed", (4, 5), True, True),
    ("transposed", (4, 4), True, True),
    ("same", (4, 4), False, True),
    ("differs", (4, 4), False, False),
    ("differs", (4, 5), True, False),
]


@pytest.mark.parametrize("mine_first", [False, True])
@pytest.mark.parametrize(("verdict", "shape", "turned", "equal"), ARRAYS)
def test_arrays_tell_whether_a_weight_is_transposed(
    verdict, shape, turned, equal, mine_first, tmp_path
):
    theirs = np.random.RandomState(1).randn(*shape).astype(np.float32)
    mine = theirs.T if turned else theirs
    mine = np.ascontiguousarray(mine if equal else mine[::-1])
    numbers = {
        "Max": float(theirs.max()),
        "Min": float(theirs.min()),
        "Mean": float(theirs.mean()),
        "Norm": float(np.linalg.norm(theirs)),
    }
    record = {**torch_tensor(**numbers, shape=list(shape)), "data_name": "w.pt"}
    own = {**tensor(**numbers, shape=list(mine.shape)), "data_name": "w.npy"}
    golden = write(
        tmp_path / "pt" / "step0",
        {"Module.fc.Linear.forward.0": cell([torch_tensor()], [torch_tensor()], weight=record)},
        framework="pytorch",
        task="tensor",
        dump_data_dir="x",
    )
    ours = write(
        tmp_path / "ms" / "step0",
        {"Cell.fc.Dense.forward.0": cell([tensor()], [tensor()], weight=own)},
        task="tensor",
        dump_data_dir="x",
    )
    for folder in (golden, ours):
        (folder / "dump_tensor_data").mkdir()
    stored = archives.storage(size=theirs.size)
    body = archives.tensor(shape, (shape[1], 1), stored=stored)
    archives.write(golden / "dump_tensor_data" / "w.pt", body, theirs.tobytes())
    np.save(ours / "dump_tensor_data" / "w.npy", mine)
    comparison = probe.compare(ours, golden) if mine_first else probe.compare(golden, ours)
    found = {key[2]: verdict for key, verdict in rows(comparison).items()}
    assert found["parameters.weight"] == verdict
    weight = probe.open(golden)[0]["Module.fc.Linear.forward.0"].parameters["weight"]
    assert np.array_equal(weight.array(), theirs)


def test_a_hostile_array_is_not_executed_and_the_statistics_count(tmp_path):
    record = {**torch_tensor(), "data_name": "w.pt"}
    own = {**tensor(), "data_name": "w.npy"}
    golden = write(
        tmp_path / "pt" / "step0",
        {"Module.fc.Linear.forward.0": cell([torch_tensor()], [torch_tensor()], weight=record)},
        framework="pytorch",
        task="tensor",
        dump_data_dir="x",
    )
    ours = write(
        tmp_path / "ms" / "step0",
        {"Cell.fc.Dense.forward.0": cell([tensor()], [tensor()], weight=own)},
        task="tensor",
        dump_data_dir="x",
    )
    for folder in (golden, ours):
        (folder / "dump_tensor_data").mkdir()
    target = tmp_path / "executed"
    body = (
        archives.PROTO
        + archives.name("os", "system")
        + b"("
        + archives.text(f"touch {target}")
        + b"tR."
    )
    archives.write(golden / "dump_tensor_data" / "w.pt", body)
    np.save(ours / "dump_tensor_data" / "w.npy", np.zeros((2, 3), np.float32))
    assert probe.compare(golden, ours).ok
    weight = probe.open(golden)[0]["Module.fc.Linear.forward.0"].parameters["weight"]
    with pytest.raises(probe.UsageError, match=r"asks for os\.system"):
        weight.array()
    assert not target.exists()


def test_apis_are_paired_by_words_and_not_blamed_for_their_signatures(tmp_path):
    left = {
        "Functional.layer_norm.0.forward": forward(
            [
                torch_tensor(),
                value([6]),
                torch_tensor(shape=[6], norm=3.0),
                torch_tensor(shape=[6], norm=4.0),
            ],
            [torch_tensor(norm=5.0)],
            eps=value(1e-5),
        ),
        "Functional.linear.0.forward": forward(
            [torch_tensor(norm=5.0), torch_tensor(norm=7.0)], [torch_tensor(norm=6.0)]
        ),
        "Tensor.__mul__.0.forward": forward(
            [torch_tensor(norm=6.0), value(0.5)], [torch_tensor(norm=3.0)]
        ),
    }
    right = {
        "Primitive.norm.LayerNorm.0.forward": forward(
            [tensor(), tensor(shape=[6], norm=3.0), tensor(shape=[6], norm=4.0)],
            [tensor(norm=5.0), tensor(shape=[1], norm=1.0), tensor(shape=[1], norm=2.0)],
        ),
        "Functional.dense.0.forward": forward(
            [tensor(norm=5.0), tensor(norm=7.0)], [tensor(norm=6.0)]
        ),
        "Tensor.__mul__.0.forward": forward([tensor(norm=6.0), value(0.5)], [tensor(norm=3.0)]),
    }
    comparison = compare(tmp_path, left, right)
    assert comparison.ok
    assert comparison.pairs == {"mapped": 2, "exact": 1}
    right["Tensor.__mul__.0.forward"] = forward([tensor(norm=6.0), value(0.25)], [tensor(norm=1.5)])
    first = compare(tmp_path / "again", left, right).first
    assert (first.kind, first.name, first.place) == (
        "argument",
        "Tensor.__mul__.0.forward",
        "input.1",
    )


def test_a_map_of_the_user_comes_first(tmp_path):
    left = {"Module.fc.Linear.forward.0": cell([torch_tensor()], [torch_tensor()])}
    right = {"Cell.head.Projection.forward.0": cell([tensor()], [tensor()])}
    comparison = compare(tmp_path, left, right, mapping={"fc.Linear": "head.Projection"})
    assert comparison.pairs == {"mapped": 1}


def test_the_parents_that_msprobe_writes_for_megatron_are_read(tmp_path):
    name, inner = "Module.b.Block.forward.0", "Module.b.fc.Linear.forward.0"
    folder = write(
        tmp_path / "d" / "step0",
        {
            inner: cell([torch_tensor()], [torch_tensor()]),
            name: cell([torch_tensor()], [torch_tensor()]),
        },
        construct={inner: [name, 0], name: [None, 0], "megatron_micro_step_number": 0},
        framework="pytorch",
    )
    assert probe.open(folder)[0][inner].cell == "b.Block"

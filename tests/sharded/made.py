# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes the dump of one step of a small net on one card, or on a mesh of ranks, whose records have layouts.

The numbers are those of a real step: two layers, the first split by its outputs and the second by its inputs, a batch
that is split over the axis "dp", gradients that are averaged there. A fault changes what some ranks have.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np

BATCH, IN, HIDDEN = 8, 6, 12


def tensor(array, name="", layout=None, arrays=None):
    """Return the record of an array, and note the array under its file's name."""
    wide = np.asarray(array, np.float64)
    record = {
        "type": "mindspore.Tensor",
        "dtype": "Float32",
        "shape": list(wide.shape),
        "Max": float(wide.max()),
        "Min": float(wide.min()),
        "Mean": float(wide.mean()),
        "Norm": float(np.linalg.norm(wide)),
    }
    if not np.isfinite(wide).all():
        record["nan_count"] = int(np.isnan(wide).sum())
    if arrays is not None:
        arrays[f"{name}.npy"] = np.asarray(array, np.float32)
        record["data_name"] = f"{name}.npy"
    return record if layout is None else {**record, "layout": layout}


def net(seed=0):
    random = np.random.RandomState(seed)
    made = SimpleNamespace(
        x=random.randn(BATCH, IN),
        w1=random.randn(HIDDEN, IN),
        w2=random.randn(IN, HIDDEN),
        b=random.randn(IN),
    )
    return made


def step(values, rows, columns, reduce=lambda term: term, share=1.0):
    """Return the tensors of one rank: of these rows of the batch, and these hidden units.

    Args:
        values: see ``net``.
        rows: the rows of the batch.
        columns: the hidden units.
        reduce: makes the sum of the second layer's terms from a function (columns) -> term.
        share: the part of the batch in the mean.
    """
    x, w1, w2 = values.x[rows], values.w1[columns], values.w2[:, columns]
    h = x @ w1.T
    a = np.maximum(h, 0)
    p = a @ w2.T
    y = np.maximum(x @ values.w1.T, 0) @ values.w2.T  # the sum of all terms
    z = y + values.b
    gz = z / (BATCH * IN * share)
    gh = gz @ w2 * (h > 0)
    return SimpleNamespace(
        x=x,
        w1=w1,
        w2=w2,
        b=values.b,
        h=h,
        a=a,
        p=p,
        y=y,
        z=z,
        gw1=gh.T @ x,
        gw2=gz.T @ a,
        gb=gz.sum(0),
    )


def entries(t, place=lambda name: None, arrays=None, rate=0.1):
    """Return the entries of a rank with these tensors."""

    def call(name, given, made, parameters=()):
        records = [
            tensor(getattr(t, key), f"{name}.input.{i}", place(key), arrays)
            for i, key in enumerate(given)
        ]
        out = [
            tensor(getattr(t, key), f"{name}.output.{i}", place(key), arrays)
            for i, key in enumerate(made)
        ]
        return {"input_args": records, "input_kwargs": {}, "output": out}

    def gradient(name, parameter, key):
        if getattr(t, key) is None:
            return {}
        return {
            name: {parameter: [tensor(getattr(t, key), f"{name}.{parameter}", place(key), arrays)]}
        }

    name = "MintDistributed.all_reduce.0.forward"
    reduced = {name: call(name, ("p",), ("y",))} if t.summand == "y" else {}
    update = "Cell.optimizer.SGD.forward.0"
    given = [f"e{key[1:]}" for key in ("gw1", "gw2", "gb")]
    entered = [
        tensor(getattr(t, key), f"{update}.input.0.{i}", place(key), arrays)
        for i, key in enumerate(given)
    ]
    number = {"learning_rate": {"type": "float", "value": rate}}
    number["parameters"] = [
        {"type": "str", "value": name} for name in ("fc1.weight", "fc2.weight", "fc2.bias")
    ]
    return {
        "Functional.dense.0.forward": call("Functional.dense.0.forward", ("x", "w1"), ("h",)),
        "Functional.relu.0.forward": call("Functional.relu.0.forward", ("h",), ("a",)),
        "Functional.matmul.0.forward": call("Functional.matmul.0.forward", ("a", "w2"), ("p",)),
        **reduced,
        "Tensor.__add__.0.forward": call("Tensor.__add__.0.forward", (t.summand, "b"), ("z",)),
        **gradient("Cell.fc2.Dense.parameters_grad.0", "weight", "gw2"),
        **gradient("Cell.fc1.Dense.parameters_grad.0", "weight", "gw1"),
        update: {"input_args": [entered], "input_kwargs": number, "output": []},
    }


def write(folder, data, arrays=None, task="tensor"):
    folder.mkdir(parents=True)
    header = {
        "task": task,
        "level": "mix",
        "framework": "mindspore",
        "dump_data_dir": "x" if arrays else None,
    }
    lines = json.dumps({**header, "data": data}, indent=1, default=str)
    (folder / "dump.json").write_text(_on_one_line(lines))
    if arrays:
        (folder / "dump_tensor_data").mkdir()
        for name, array in arrays.items():
            np.save(folder / "dump_tensor_data" / name, array)


def _on_one_line(text):
    """Return the text of a document whose layouts stand on one line, as probe writes them."""
    lines, found, depth = text.splitlines(), [], 0
    for line in lines:
        if depth or line.strip().startswith('"layout": {'):
            found[-1:] = [found[-1] + line.strip()] if depth else [found[-1], line]
            depth += line.count("{") + line.count("[") - line.count("}") - line.count("]")
        else:
            found.append(line)
    return "\n".join(found)


def one_card(folder, has_arrays=True):
    """Write the dump of one card."""
    arrays = {} if has_arrays else None
    t = step(net(), slice(None), slice(None))
    t.summand = "p"
    t.ew1, t.ew2, t.eb = t.gw1, t.gw2, t.gb
    write(
        folder / "step0" / "rank",
        entries(t, arrays=arrays),
        arrays,
        "tensor" if has_arrays else "statistics",
    )
    return folder


#: name -> its placement along "dp", and along "tp"
PLACEMENTS = {
    "x": ("Shard(0)", "Replicate"), "w1": ("Replicate", "Shard(0)"), "h": ("Shard(0)", "Shard(1)"),
    "a": ("Shard(0)", "Shard(1)"), "w2": ("Replicate", "Shard(1)"), "p": ("Shard(0)", "Partial(sum)"),
    "y": ("Shard(0)", "Replicate"), "b": ("Replicate", "Replicate"), "z": ("Shard(0)", "Replicate"),
    "gw1": ("Replicate", "Shard(0)"), "gw2": ("Replicate", "Shard(1)"), "gb": ("Replicate", "Replicate"),
}  # fmt: skip
PLACEMENTS.update({f"e{key[1:]}": PLACEMENTS[key] for key in ("gw1", "gw2", "gb")})


def mesh(folder, dp=1, tp=1, change=None, has_arrays=True, tp_first=False):
    """Write the dump of a mesh of ranks.

    Args:
        folder: the dump.
        dp: the number of parts of the batch.
        tp: the number of parts of the hidden units.
        change: (tensors of all ranks by their coordinates) -> None; plants a fault.
        has_arrays: whether there are arrays.
        tp_first: whether neighbours along "dp" have neighbouring ranks.
    """
    values, ranks = net(), {}
    for i in range(dp):
        for j in range(tp):
            rows = slice(i * BATCH // dp, (i + 1) * BATCH // dp)
            columns = slice(j * HIDDEN // tp, (j + 1) * HIDDEN // tp)
            ranks[i, j] = step(values, rows, columns, share=1 / dp)
            ranks[i, j].summand, ranks[i, j].rate, ranks[i, j].placements = (
                "y",
                0.1,
                dict(PLACEMENTS),
            )
    for j in range(tp):
        for key in ("gw1", "gw2", "gb"):
            mean = sum(getattr(ranks[i, j], key) for i in range(dp)) / dp
            for i in range(dp):
                setattr(ranks[i, j], key, mean)
                setattr(ranks[i, j], f"e{key[1:]}", mean)
    if change:
        change(ranks)
    for (i, j), t in ranks.items():
        rank = j * dp + i if tp_first else i * tp + j
        sizes, where = (
            ({"tp": tp, "dp": dp}, [j, i]) if tp_first else ({"dp": dp, "tp": tp}, [i, j])
        )

        def place(name, t=t, sizes=sizes, where=where):
            along = dict(zip(("dp", "tp"), t.placements[name]))
            return {
                "mesh": sizes,
                "coordinate": where,
                "placements": [along[axis] for axis in sizes],
                "shape": [],
            }

        arrays = {} if has_arrays else None
        data = entries(t, place, arrays, t.rate)
        write(
            folder / "step0" / f"rank{rank}", data, arrays, "tensor" if has_arrays else "statistics"
        )
    return folder

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes the dumps of several ranks out of a real one of ``training.py``, as Megatron's layers are split.

    python -m tests.reading.compare.layouts.split DUMP OUT tp=2,pp=2

Column layers have rows of the weight and parts of the outputs. Row layers have columns of the weight, parts of the
inputs and terms of the outputs. Attention has some of the heads, the embedding rows of its table. Norms are on every
rank. Stages have some of the layers, and number them from 0. Collectives are entries of their own.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np

from probe.reading.compare.layouts.layout import complete, parse_layout
from probe.reading.dumps.entry_name import parse
from probe.reading.dumps.entry_view import WORDS
from probe.reading.dumps.values import is_tensor, leaves
from tests.reading.compare.layouts.training import HEADS, HIDDEN, LAYERS, VOCABULARY, WIDTH

#: sizes that are split, by Cell: of the outputs of a column layer, of the inputs of a row layer
COLUMN = {"qkv": 3 * WIDTH, "fc1": HIDDEN, "head": VOCABULARY}
ROW = {"proj": WIDTH, "fc2": HIDDEN}
PARTIAL = -2


def record_of(array, like, name):
    """Return the record of an array."""
    wide = np.asarray(array, np.float64)
    exact = int if array.dtype.kind in "iu" else float
    numbers = {"Max": exact(wide.max()), "Min": exact(wide.min()), "Mean": float(wide.mean())}
    made = {**like, "shape": list(array.shape), **numbers, "Norm": float(np.linalg.norm(wide))}
    made.pop("md5", None)
    if "data_name" in made:
        made["data_name"] = f"{name}.npy"
    return made


class Split:
    """One step of a dump of a single rank.

    Args:
        folder: its rank folder.
        statistics: whether the ranks have no arrays.
        without_cells: whether the ranks have no Cells, as at level L1.
    """

    def __init__(self, folder, statistics=False, without_cells=False):
        self.folder, self.statistics, self.without_cells = Path(folder), statistics, without_cells
        self.arrays = {}
        document = json.loads((self.folder / "dump.json").read_text())
        self.data = document.pop("data")
        self.header = document
        self.stack = json.loads((self.folder / "stack.json").read_text())
        self.construct = json.loads((self.folder / "construct.json").read_text())

    def array(self, record):
        name = record["data_name"]
        if name not in self.arrays:
            self.arrays[name] = np.load(self.folder / "dump_tensor_data" / name)
        return self.arrays[name]

    def path_of(self, name):
        """Return the path of the Cell that an entry is of, or is in."""
        parts = parse(name)
        return parts.path or parse(self.construct.get(name) or "").path

    def stage_of(self, name, stages):
        found = re.match(r"layers\.(\d+)", self.path_of(name))
        if found:
            return int(found[1]) * stages // LAYERS
        return 0 if self.path_of(name) == "embedding" else stages - 1

    def axis(self, name, place, shape):  # noqa: PLR0911 (a rule for each layer)
        """Return the axis along which a tensor is split; None for none, ``PARTIAL`` for terms of a sum."""
        parts, path = parse(name), self.path_of(name)
        last = path.rpartition(".")[2]
        is_cell = parts.kind == "cell"
        if last == "embedding":
            if shape[:1] == [VOCABULARY]:
                return 0
            return (
                PARTIAL
                if parts.api == "gather" and place == "output.0" and parts.direction == "forward"
                else None
            )
        if last in COLUMN:
            if last == "head" and is_cell and not place.startswith("parameters"):
                return None  # gathered
            if COLUMN[last] in shape:
                return shape.index(COLUMN[last])
            return PARTIAL if parts.api == "matmul" and parts.direction == "backward" else None
        if last in ROW:
            return self.row_axis(parts, place, shape, ROW[last])
        if last == "attention" and not is_cell:
            if HEADS in shape and len(shape) > 2:
                return shape.index(HEADS)
            return 2 if len(shape) == 3 else None
        return shape.index(HIDDEN) if last == "mlp" and HIDDEN in shape else None

    @staticmethod
    def row_axis(parts, place, shape, size):
        backward = parts.direction == "backward"
        if len(shape) == 2:  # the weight, or transposed
            return (
                shape.index(size)
                if size != WIDTH
                else int(
                    place.endswith("weight")
                    or place.endswith("weight.0")
                    or (
                        parts.api == "swapaxes" and place == ("output.0" if backward else "input.0")
                    )
                )
            )
        if len(shape) != 3:
            return None
        given = place == "input.0" and not backward
        if parts.kind == "cell":
            return 2 if given or (backward and place == "output.0") else None
        if parts.api == "matmul":
            if place == "output.0" and not backward:
                return PARTIAL
            return 2 if given or (backward and place == "output.0") else None
        return None

    def term(self, name, rank, count):
        """Return the term of a sum that a rank has."""
        parts = parse(name)
        forward = self.data[parts.forward]
        given = [self.array(item) for item in forward["input_args"] if is_tensor(item)]
        if parts.api == "gather":
            rows = VOCABULARY // count
            own = (given[1] >= rank * rows) & (given[1] < (rank + 1) * rows)
            return np.where(own[..., None], given[0][given[1]], 0).astype(np.float32)
        weight = given[1]
        if parts.direction == "forward":  # of a row layer
            return np.split(given[0], count, -1)[rank] @ np.split(weight, count, 0)[rank]
        gradient = self.array(self.data[name]["input"][0])
        return np.split(gradient, count, -1)[rank] @ np.split(weight, count, 1)[rank].T

    def before_mask(self, rank, count):
        """Return the rows that a rank looks up; rows of other ranks are its first one until they are masked."""
        table, ids = (
            self.array(item) for item in self.data["Functional.gather.0.forward"]["input_args"][:2]
        )
        own = ids - rank * (VOCABULARY // count)
        return np.split(table, count)[rank][
            np.where((own >= 0) & (own < VOCABULARY // count), own, 0)
        ]

    def part(self, name, place, record, rank, count):
        """Return the array of a rank."""
        axis = self.axis(name, place, record["shape"]) if count > 1 else None
        if axis == PARTIAL:
            return (
                self.before_mask(rank, count)
                if parse(name).api == "gather"
                else self.term(name, rank, count)
            )
        whole = self.array(record)
        return whole if axis is None else np.split(whole, count, axis)[rank]

    def write(self, root, text, step=0, change=None):
        """Write the ranks of a layout below a folder, and return it.

        Args:
            root: the folder.
            text: the layout.
            step: the number of the step.
            change: (rank, entry, place, array) -> array, for one tensor of one rank.
        """
        layout = parse_layout(text, "layout")
        layout = complete(
            layout._replace(dp=layout.dp or 1),
            list(range(layout.tp * layout.pp * (layout.dp or 1))),
            "",
        )
        for rank in range(layout.world):
            for dp in range(layout.dp):
                for pp in range(layout.pp):
                    for tp in range(layout.tp):
                        if layout.rank(tp=tp, dp=dp, pp=pp) == rank:
                            Rank(self, layout, rank, (tp, dp, pp), change).write(
                                Path(root) / f"step{step}" / f"rank{rank}"
                            )
        return Path(root)


class Rank:
    """The dump of one rank."""

    def __init__(self, whole, layout, rank, place, change):
        self.whole, self.layout, self.rank, self.change = whole, layout, rank, change
        self.tp, self.dp, self.pp = place
        self.data, self.construct, self.counts, self.arrays = {}, {}, {}, {}
        self.group = [str(layout.rank(tp=tp, dp=self.dp, pp=self.pp)) for tp in range(layout.tp)]
        self.names = [name for name in whole.data if whole.stage_of(name, layout.pp) == self.pp]
        self.least = {}
        for name in self.names:
            parts = parse(name)
            if parts.kind == "api":
                self.least[parts.key] = min(self.least.get(parts.key, parts.number), parts.number)

    def renamed(self, name):
        """Return a name as the stage has it."""
        if name is None:
            return None
        parts = parse(name)
        if parts.kind == "api":
            return f"{parts.key}.{parts.number - self.least.get(parts.key, 0)}.{parts.direction}"
        first = self.pp * LAYERS // self.layout.pp
        return re.sub(r"(?<=Cell\.layers\.)\d+", lambda found: str(int(found[0]) - first), name)

    def write(self, folder):
        arrays = folder / "dump_tensor_data"
        arrays.mkdir(parents=True)
        if self.pp:
            self.add("MintDistributed.recv", [], [np.zeros(1, np.float32)], None)
        for name in self.names:
            self.entry(name)
        if self.pp < self.layout.pp - 1:
            self.add(
                "MintDistributed.send", [np.zeros(1, np.float32)], [np.zeros(1, np.float32)], None
            )
        if self.whole.without_cells:
            self.data = {
                name: entry for name, entry in self.data.items() if not name.startswith("Cell.")
            }
            self.construct = {}
        stack = {}
        for names, frames in self.whole.stack.values():
            kept = [self.renamed(name) for name in names if name in self.names]
            if kept:
                stack[str(len(stack))] = [kept, frames]
        header = dict(self.whole.header, task="statistics" if self.whole.statistics else "tensor")
        header["level"] = "L1" if self.whole.without_cells else header["level"]
        header["dump_data_dir"] = None if self.whole.statistics else str(arrays)
        header["run"] = {
            **header.get("run", {}),
            "world_size": self.layout.world,
            "rank": self.rank,
        }
        (folder / "dump.json").write_text(json.dumps({**header, "data": self.data}, indent=1))
        (folder / "stack.json").write_text(json.dumps(stack))
        (folder / "construct.json").write_text(json.dumps(self.construct))
        for name, array in self.arrays.items():
            np.save(arrays / name, array)

    def record(self, entry, word, place, array, like):
        made = record_of(array, like, f"{entry}.{place}" if word else place)
        if self.whole.statistics:
            made.pop("data_name", None)
        else:
            self.arrays[made["data_name"]] = array
        return made

    def entry(self, name):
        own = self.renamed(name)
        entry, parents = self.whole.data[name], self.whole.construct
        self.data[own] = self.parted(name, own, entry)
        if name in parents:
            self.construct[own] = self.renamed(parents[name])
        self.communicate(name, own)

    def parted(self, name, own, entry):
        parts = parse(name)

        def part(value, place):
            if is_tensor(value):
                array = self.whole.part(name, place, value, self.tp, self.layout.tp)
                if self.dp:
                    array = (array * 1.1).astype(array.dtype)
                if self.change:
                    array = self.change(self.rank, own, place, array)
                start = (
                    own.rpartition(".parameters_grad")[0]
                    if parts.kind == "parameters_grad"
                    else own
                )
                stored = f"{own}.{place.removesuffix('.0')}" if start != own else f"{own}.{place}"
                return self.record(own, "", stored, array, value)
            if isinstance(value, dict) and type(value.get("type")) is str:
                return self.plain(name, place, value)
            if isinstance(value, dict):
                return {
                    key: part(item, f"{place}.{key}" if place else key)
                    for key, item in value.items()
                }
            if isinstance(value, list):
                return [
                    part(item, f"{place}.{i}" if place else str(i)) for i, item in enumerate(value)
                ]
            return value

        if any(key in WORDS for key in entry):
            return {
                key: part(item, WORDS[key]) if key in WORDS else item for key, item in entry.items()
            }
        return part(entry, "")

    def plain(self, name, place, value):
        """Return a plain argument: the number of heads, and the width of the heads of a rank."""
        is_size = parse(name).api == "reshape" and self.whole.path_of(name).endswith("attention")
        if is_size and place.startswith("input.1.") and value.get("value") in (HEADS, WIDTH):
            return {**value, "value": value["value"] // self.layout.tp}
        return value

    def communicate(self, name, own):
        """Add the collectives that follow a call."""
        if self.layout.tp == 1:
            return
        parts, last = parse(name), self.whole.path_of(name).rpartition(".")[2]
        around = self.construct.get(own)
        for place, leaf in leaves(
            self.whole.data[name].get("output") if "output" in self.whole.data[name] else None
        ):
            if (
                is_tensor(leaf)
                and self.whole.axis(name, f"output.{place}", leaf["shape"]) == PARTIAL
            ):
                term = self.whole.term(name, self.tp, self.layout.tp)
                if last == "embedding":
                    looked_up = self.whole.before_mask(self.tp, self.layout.tp)
                    self.add("Functional.masked_fill", [looked_up], [term], around)
                self.add("MintDistributed.all_reduce", [term], [self.whole.array(leaf)], around)
        if last == "head" and parts.api == "__add__" and parts.direction == "forward":
            whole = self.whole.array(self.whole.data[name]["output"][0])
            shards = np.split(whole, self.layout.tp, -1)
            self.add(
                "MintDistributed.all_gather",
                [shards, shards[self.tp]],
                [shards, shards[self.tp]],
                around,
            )
            self.add("Functional.concat", [shards], [whole], around)

    def add(self, key, given, made, around):
        """Add a call that only this layout has."""
        number = self.counts[key] = self.counts.get(key, -1) + 1
        name = f"{key}.{number}.forward"
        like = {"type": "mindspore.Tensor", "dtype": "Float32", "data_name": ""}

        def part(value, place):
            if isinstance(value, list):
                return [part(item, f"{place}.{i}") for i, item in enumerate(value)]
            return self.record(name, "", f"{name}.{place}", value, like)

        self.data[name] = {
            "input_args": part(given, "input"),
            "input_kwargs": {},
            "output": part(made, "output"),
        }
        if "Distributed" in key:
            self.data[name]["group_ranks"] = self.group
        self.construct[name] = around


def main(dump, out, layout):
    shutil.rmtree(out, ignore_errors=True)
    for folder in sorted(Path(dump).glob("step*")):
        Split(next(folder.glob("rank*"))).write(out, layout, int(folder.name[4:]))


if __name__ == "__main__":
    main(*sys.argv[1:])

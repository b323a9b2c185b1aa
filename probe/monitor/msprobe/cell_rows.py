# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The rows of TrainerMon that are known from the tensors of one call: of a Cell, or of a collective."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from probe.measure import features
from probe.monitor.cell_values import ONLY, CellTask, CellValues, Note
from probe.monitor.msprobe.config import TrainerConfig
from probe.monitor.msprobe.values import Watched, chosen_cells, dtype_of
from probe.monitor.numbers import HostNumbers
from probe.naming import COLLECTIVE, escape_formula
from probe.recording.call_stacks import format_stack
from probe.series.msprobe_csv import L2_HOOKS
from probe.series.series_name import FEATURES, Slot
from probe.store import file_io
from probe.store.error_log import ErrorLog

ATTENTION, LINEAR, ROUTER_WEIGHT, ROUTER_LOGIT = L2_HOOKS
#: hook -> the end of its rows' names, and the function of their numbers
_HOOKS: dict[str, tuple[str, Callable[..., features.Scalars]]] = {
    ATTENTION: ("attention", features.attention),
    LINEAR: ("linear", features.stable_rank),
    ROUTER_WEIGHT: ("moe_router", features.similarity),
    ROUTER_LOGIT: ("moe_router", features.router),
}
#: the beginning of a file, the name of a row, its part of the step, and the numbers or what they are made of
Found = tuple[str, str, str, dict[str, Any]]


class CellRows:
    """Makes the rows. In the first measured step stacks and shapes are collected too, if the settings say so."""

    def __init__(
        self,
        config: TrainerConfig,
        parts: Watched,
        numbers: HostNumbers,
        errors: ErrorLog,
        is_first: bool = False,
    ) -> None:
        self._config = config
        self._numbers = numbers
        self._errors = errors
        self._accumulated = parts.accumulated
        has_xy = config.xy_distribution and not (config.forward_only and config.backward_only)
        every = config.all_xy or not config.targets
        self._xy = chosen_cells(parts.models, config.targets, every) if has_xy else {}
        self._all = dict(self._xy)
        self._hooks = defaultdict[str, list[tuple[str, str]]](list)
        for hook, names in config.l2_targets.items() if config.recording_l2_features else ():
            for key, found in chosen_cells(parts.models, names, False).items():
                self._all.setdefault(key, found)
                self._hooks[key].append((hook, found[0]))
        is_told = (
            config.stack_info or config.print_struct or config.cc_distribution.get("cc_log_only")
        )
        self.structure = ModelStructure(config, parts.models) if is_first and is_told else None
        self._calls: dict[str, dict[str, int]] = defaultdict(
            dict
        )  # Cell -> number of the call -> place in the step
        #: Cell and number of a call -> its queries; True of a collective that ``cc_codeline`` does not name
        self._kept: dict[tuple[str, str], Any] = {}

    def watching(self, note: Note) -> list[CellValues]:
        """Return what passes the tensors of the calls on."""
        config = self._config
        structure = self.structure
        every = structure and structure.cells
        collectives = COLLECTIVE if config.cc_distribution.get("enable") else ()
        names = (*(f"{key}." for key in self._all), *collectives)
        has_gradients = (self._xy and not config.forward_only) or (
            structure and config.print_struct
        )
        modes = frozenset(("input", "output", "forward", *(("backward",) if has_gradients else ())))
        settings = replace(
            ONLY, level="mix" if collectives else "L0", data_mode=modes, list=() if every else names
        )
        return (
            [CellValues(settings, self._errors, CellTask(modes, note, COLLECTIVE))]
            if names or every
            else []
        )

    def forget(self) -> None:
        """End a step."""
        self._calls.clear()
        self._kept.clear()

    def rows(
        self, slot: Slot, tensor: Any, measured: Callable[[Any], dict[str, Any]]
    ) -> Iterator[Found]:
        """Yield the rows of a tensor, or of the gradient of one; not of a call of a Cell that trains nothing."""
        kind, _, api = slot.cell.partition(".")
        if kind in COLLECTIVE:
            if self._is_wanted(slot, api):
                yield "cc_distribution", f"0:{api}.{slot.call}.{slot.in_cell}", "", measured(tensor)
            return
        if self.structure is not None:
            self.structure.note(slot, tensor)
        (name, cell) = self._all.get(slot.cell, ("", None))
        calls = self._calls[slot.cell]
        if cell is None or (slot.call not in calls and not cell.training):
            return
        part = calls.setdefault(slot.call, len(calls)) % self._accumulated
        for hook, own in () if slot.is_backward else self._hooks.get(slot.cell, ()):
            with self._errors.guard("computing a feature", f"{hook} of {own}"):
                yield from self._features(hook, own, slot, tensor, part)
        is_left_out = self._config.forward_only if slot.is_backward else self._config.backward_only
        if slot.cell in self._xy and not is_left_out:
            yield (
                "actv_grad" if slot.is_backward else "actv",
                f"{name}.{slot.in_cell}",
                str(part),
                measured(tensor),
            )

    def _features(
        self, hook: str, name: str, slot: Slot, tensor: Any, part: int
    ) -> Iterator[Found]:
        """Yield the rows of one feature; none where the tensor is not the last that it needs."""
        if hook == ATTENTION:
            given = self._of_attention(name, slot, tensor)
        else:
            given = self._of_weight(hook, slot, tensor, part)
        if not given:
            return
        end, function = _HOOKS[hook]
        row = f"{name}.{end}"
        own_part = "" if hook == ROUTER_WEIGHT else str(part)
        computed = self._numbers.computed(function, *given)
        numbers = {key: number for key, number in computed.items() if key in FEATURES}
        yield hook, row, own_part, numbers
        if hook == ROUTER_LOGIT:
            for expert, count in self._numbers.computed(features.tokens, *given).items():
                yield "tokens_per_expert", f"{row}.{expert}", own_part, {"tokens": count}

    def _of_attention(self, name: str, slot: Slot, tensor: Any) -> tuple[Any, ...]:
        """Return queries, keys and their layout, once both have come; else ()."""
        if slot.in_cell not in ("input_0", "input_1"):
            return ()
        query = self._kept.pop((slot.cell, slot.call), None)
        if tensor.ndim != 4:
            told = f"{ATTENTION} needs queries and keys of 4 dimensions: {name} has none"
            self._errors.note(name, told)
            return ()
        if slot.in_cell == "input_0":
            self._kept[slot.cell, slot.call] = tensor
            return ()
        if query is None:
            return ()
        layout = self._config.sa_order.upper().replace(",", "").replace("H", "N")
        return query, tensor, layout

    def _of_weight(self, hook: str, slot: Slot, tensor: Any, part: int) -> tuple[Any, ...]:
        """Return the logits of a router, or the weight of a Cell in the last part of a step; else ()."""
        if slot.in_cell != "output_0":
            return ()
        source = tensor
        if hook != ROUTER_LOGIT:
            is_last = part == self._accumulated - 1
            source = features.matrix_of(self._all[slot.cell][1]) if is_last else None
        return (source,) if getattr(source, "ndim", 0) > 1 else ()

    def _is_wanted(self, slot: Slot, api: str) -> bool:
        """Return whether a tensor of a collective is measured, by the keys of ``cc_distribution``."""
        own = self._config.cc_distribution
        is_input = slot.place.startswith("input")
        call = (slot.cell, slot.call)
        stack = (
            ";".join(format_stack(sys._getframe())) if is_input and own.get("cc_codeline") else ""
        )
        if stack and not any(re.search(pattern, stack) for pattern in own["cc_codeline"]):
            self._kept[call] = True
        if (
            own.get("cc_log_only")
            and is_input
            and self.structure is not None
            and call not in self._kept
        ):
            self.structure.add_stack(f"0:{api}")
        return (
            call not in self._kept
            and not own.get("cc_log_only")
            and (own.get("cc_pre_hook") or not is_input)
        )


class ModelStructure:
    """Collects, in the first measured step, the stacks of all Cells, and the shapes of their tensors."""

    def __init__(self, config: TrainerConfig, models: Sequence[Any]) -> None:
        self._config = config
        self.cells = (
            chosen_cells(models, (), True) if config.stack_info or config.print_struct else {}
        )
        self._stacks: dict[str, str] = {}
        self._shapes: dict[
            str, dict[str, dict[str, str]]
        ] = {}  # name -> side -> place -> shape and dtype

    def note(self, slot: Slot, tensor: Any) -> None:
        """Take a tensor of a Cell's call, while the call runs."""
        if slot.cell not in self.cells or slot.call != "0":
            return
        name = self.cells[slot.cell][0]
        (side, _, place) = slot.in_cell.partition("_")
        if self._config.stack_info and not slot.is_backward:
            self.add_stack(name)
        if self._config.print_struct:
            sides = self._shapes.setdefault(
                name, {"input": {}, "output": {}, "input_grad": {}, "output_grad": {}}
            )
            text = f"size={tuple(tensor.shape)}, dtype={dtype_of(tensor)}"
            sides[f"{side}_grad" if slot.is_backward else side][place] = text

    def add_stack(self, name: str) -> None:
        """Keep the stack of a call that runs, of the first with this name."""
        if name not in self._stacks:
            self._stacks[name] = "".join(f"{line} \n" for line in format_stack(sys._getframe()))

    def write(self, folder: str, rank: int) -> None:
        """Write stack_info.csv into a folder, and module_struct.json beside the folder; only what there is."""
        if self._stacks:
            text = io.StringIO()
            rows = {"module_name": "stack_info", **self._stacks}
            csv.writer(text, lineterminator="\n").writerows(
                (escape_formula(name), said) for name, said in rows.items()
            )
            file_io.write(
                os.path.join(file_io.make_dirs(folder), "stack_info.csv"), text.getvalue().encode()
            )
        if self._shapes:
            own = file_io.make_dirs(
                os.path.join(os.path.dirname(folder), "module_struct", f"rank{rank}")
            )
            with file_io.atomic_write(os.path.join(own, "module_struct.json")) as file:
                json.dump(
                    {name: _described(sides) for name, sides in self._shapes.items()},
                    file,
                    indent=2,
                )


def _described(sides: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    found = {}
    for side, own in sides.items():
        tensors = (
            sides[side.partition("_")[0]] if sides["input_grad"] or sides["output_grad"] else own
        )
        places = [str(place) for place in range(len(tensors))]
        free = [place for place in places if place not in own]
        keywords = [place for place in own if place not in places]
        behind = dict(
            zip(free[len(free) - len(keywords) :], keywords)
        )  # keywords are behind the others
        texts = {place: own.get(behind.get(place, place), "<class 'NoneType'>") for place in places}
        if side == "output" and len(places) == 1:
            found[side] = {"config": "tensor", "tensor": texts["0"]}
        elif places:
            found[side] = {
                "config": f"{'list' if side == 'input' else 'tuple'}[{len(places)}]",
                **texts,
            }
    return found

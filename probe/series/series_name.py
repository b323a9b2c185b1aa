# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The names of series: ``monitor/numbers`` makes them, and whoever reads them takes them apart here."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from probe.naming import MODULES

_ENDS = (".max", ".min")  # how the name of a series ends that is no norm
#: numbers of msprobe's csv files that no rule looks at
FEATURES = ("entropy", "softmax", "sr", "kernel_norm", "router_weight_similarity", "per_token_expert_entropy", "tokens",
            "mg_direction")  # fmt: skip
#: numbers of ``monitor/mechanisms`` -> the kinds of series that it makes of them
MECHANISMS = {"entropy": "attention_entropy", "logits": "attention_logits", "largest": "expert_largest",
              "smallest": "expert_smallest", "per_token_expert_entropy": "expert_entropy",
              "stable_rank": "stable_rank"}  # fmt: skip
#: the last part of a name -> the kind
_LAST = {
    **dict.fromkeys(FEATURES, "feature"),
    "grad": "grad",
    "grad_in": "grad_in",
    "param": "param",
    "update": "update",
    "global_norm": "total",
    **{name: name for name in MECHANISMS.values()},
    "update_ratio": "update_ratio",
    "max": "end",
    "min": "end",
    "seconds": "seconds",
}
#: the two halves of the CRC-32 of a tensor, 16 bits each
HIGH = "md5_high"
LOW = "md5_low"
#: the numbers of a tensor of a call, of rolling records
OF_CALLS = frozenset(("max", "min", "mean", "norm", "zeros", "peak", HIGH, LOW))
_SIDES = frozenset(("input", "output", "input_kwargs", "output_kwargs"))
_FORWARD = "forward"
_BACKWARD = "backward"
GRADIENT = "gradient"
PARAMETER = "parameter"
ACTIVATION = "activation"
RELU = "relu"


class Slot(NamedTuple):
    """The place of a tensor in a call of a Cell."""

    cell: str  # the key of the call: "Cell.fc.Dense"
    direction: str  # "forward" or "backward"
    call: str  # the number of the call
    place: str  # the place in this direction: "input.1"; the inputs of a backward are the gradients of the outputs

    def __str__(self) -> str:
        return ".".join(self)

    @property
    def path(self) -> str:
        """The path of the Cell in the model."""
        return self.cell.partition(".")[2].rpartition(".")[0]

    @property
    def is_backward(self) -> bool:
        """Whether it is a gradient."""
        return self.direction == _BACKWARD

    @property
    def in_cell(self) -> str:
        """The place of the tensor, or of the tensor of the gradient, in the Cell, as msprobe writes it.

        >>> Slot("Cell.fc.Dense", "backward", "0", "input.1").in_cell
        'output_1'
        """
        side, other = ("input", "output") if self.place.startswith("input") else ("output", "input")
        return (other if self.is_backward else side) + self.place[len(side) :].replace(".", "_")


class SeriesName(NamedTuple):
    """The parts of the name of a series."""

    #: "call" (of rolling records), "loss", "grad", "grad_in", "param", "bias", "update", "total", "scalar", "state",
    #: "scale", "cell", "end" (of a statistic), "seconds", "feature" (of a csv file of msprobe), or "logged" by the user
    kind: str
    owner: str  # the parameter or Cell; of a state the parameter too
    statistic: str = "norm"  # "norm", "max", "min", or one of the user's own
    state: str = ""  # the name of the optimizer's state, or ""

    @property
    def is_parameter(self) -> bool:
        """Whether it is the norm of a parameter."""
        return self.kind in ("param", "bias") and self.statistic == "norm"


class CallPlace(NamedTuple):
    """The place of a number of a call, of rolling records."""

    entry: str  # "Functional.relu.0.forward"
    place: str  # "output.0"
    statistic: str  # "norm"


@functools.lru_cache(100_000)
def call_place(name: str) -> CallPlace | None:
    """Return the place of a number of a call by the name of its series; None for other series.

    >>> call_place("Cell.fc.Dense.backward.0.input.1.max"), call_place("fc.weight.grad.max")
    (CallPlace(entry='Cell.fc.Dense.backward.0', place='input.1', statistic='max'), None)
    """
    parts = name.split(".")
    for begin in range(len(parts) - 3, 0, -1):
        direction = parts[begin - 2] if _is_number(parts[begin - 1]) else parts[begin - 1]
        if parts[begin] in _SIDES and direction in (_FORWARD, _BACKWARD):
            return CallPlace(".".join(parts[:begin]), ".".join(parts[begin:-1]), parts[-1])
    return None


def entered(gradient: str) -> str:
    """Return the name of a gradient as it enters the optimizer, by its name as it arrives."""
    return f"{gradient}_in"


def kind_of(name: str) -> str:
    """Return the kind of a series.

    >>> kind_of("fc.weight.grad"), kind_of("loss"), kind_of("optimizer.global_norm"), kind_of("optimizer.learning_rate")
    ('grad', 'loss', 'total', 'scalar')
    """
    last = name.rpartition(".")[2]
    if last in OF_CALLS and call_place(name) is not None:
        return "call"
    if last in _LAST:
        return (
            "bias"
            if last == "param" and name.endswith((".bias.param", ".beta.param"))
            else _LAST[last]
        )
    if name.startswith(MODULES) or name.endswith(f".grad.{last}"):
        return "cell" if _is_number(last) else "end"  # of a statistic of the user's own
    if "loss_scale" in name:
        return "scale"
    if name.startswith("optimizer"):
        return "scalar" if _is_scalar(*name.split(".")) else "state"
    return "loss" if name.startswith("loss") and _is_number(name[4:] or "0") else "logged"


def is_strange(name: str, value: float) -> bool:
    """Return whether a value is NaN/Inf; of calls only NaN, as a mask has -inf in a healthy training.

    >>> is_strange("loss", math.inf), is_strange("Functional.masked_fill.0.forward.output.0.norm", math.inf)
    (True, False)
    """
    if math.isfinite(value):
        return False
    return kind_of(name) != "call" or (math.isnan(value) and name.endswith(".norm"))


def is_learning_rate(name: str) -> bool:
    """Return whether a series is the learning rate of an optimizer, or of one of its groups."""
    return name.startswith("optimizer") and "learning_rate" in name


def is_main(name: str) -> bool:
    """Return whether a series is shown where none is chosen.

    >>> is_main("loss"), is_main("optimizer.learning_rate"), is_main("fc.weight.grad")
    (True, True, False)
    """
    return kind_of(name) in ("loss", "total", "scale", "logged") or "learning_rate" in name


def _is_scalar(optimizer: str, *parts: str) -> bool:
    """Return whether the parts name a number of an optimizer, perhaps of one group: its states belong to parameters."""
    number = _is_number(optimizer[len("optimizer") :] or "0")
    is_group = len(parts) == 2 and _is_number(parts[1])
    return number and (len(parts) == 1 or is_group) and parts[0].replace("_", "a").isalnum()


def parse(name: str) -> SeriesName:
    """Take the name of a series apart.

    >>> parse("fc.weight.grad.max"), parse("optimizer.moment1.fc.weight")[1:]
    (SeriesName(kind='grad', owner='fc.weight', statistic='max', state=''), ('fc.weight', 'norm', 'moment1'))
    """
    whole = name
    statistic = "norm"
    if kind_of(name) == "end":
        whole, _, statistic = name.rpartition(".")
    kind = kind_of(whole)
    if kind == "call":
        owner, _, statistic = name.rpartition(".")
        return SeriesName(kind, owner, statistic)
    if kind == "state":
        _, state, owner = [*whole.split(".", 2), "", ""][:3]
        return SeriesName(kind, owner, statistic, state)
    return SeriesName(kind, whole.rpartition(".")[0], statistic)


def slot_of(name: str) -> Slot | None:
    """Return the place of a tensor of a Cell by the name of its series; None for other series.

    >>> slot_of("Cell.fc.Dense.backward.0.input.1.max")
    Slot(cell='Cell.fc.Dense', direction='backward', call='0', place='input.1')
    """
    whole = name[: -len(".max")] if name.endswith(_ENDS) else name
    key, *rest = whole.rsplit(".", 4)
    if len(rest) < 4 or not key.startswith(MODULES):
        return None
    direction, call, side, place = rest
    is_known = direction in (_FORWARD, _BACKWARD) and side in ("input", "output")
    return (
        Slot(key, direction, call, f"{side}.{place}")
        if is_known and _is_number(call + place)
        else None
    )


def state_kind(name: str) -> str:
    """Return the optimizer and the kind of one of its states: "optimizer.moment1"."""
    return ".".join(name.split(".", 2)[:2])


# -- tensors of dumps: the name of an entry, and the place in it ------------------------------------------------------


def kinds_of_tensor(name: str) -> frozenset[str]:
    """Return the kinds of a tensor of a dump; nothing of a learning rate, which may stay, jump and fall to zero.

    >>> sorted(kinds_of_tensor("Functional.relu.0.forward.output.0")), kinds_of_tensor("Adam.0.forward.0.learning_rate")
    (['activation', 'any', 'relu'], frozenset())
    """
    parts = name.split(".")
    ended = parts[:-1] if _is_number(parts[-1]) else parts
    if (
        ended[-1] == "learning_rate"
        and len(ended) > 3
        and ended[-3] == _FORWARD
        and _is_number(ended[-2])
    ):
        return frozenset()
    inner = parts[1:-1]
    found = {"any"}
    found.update({GRADIENT} if "parameters_grad" in inner else ())
    found.update({PARAMETER} if "parameters" in inner else ())
    if "output" in inner and ".forward" in name:
        found.add(ACTIVATION)
        found.update({RELU} if _is_of_relu([part.lower() for part in parts]) else ())
    return frozenset(found)


def _is_of_relu(parts: list[str]) -> bool:
    for place, part in enumerate(parts[2:-1], 2):
        if part == _FORWARD and parts[place + 1].startswith("output"):
            return _is_number(parts[place - 1]) and "relu" in parts[place - 2]
        if part == _FORWARD and place + 2 < len(parts) and parts[place + 2].startswith("output"):
            return _is_number(parts[place + 1]) and parts[place - 1].startswith("relu")
    return False


def layer_kind(name: str) -> str:
    """Return the name of a Cell's tensor without the numbers of layers; "" where no layer has a number.

    >>> layer_kind("Cell.blocks.3.fc.Dense.parameters_grad.0.weight.0"), layer_kind("Cell.fc.Dense.forward.0.output.0")
    ('Cell.blocks.*.fc.Dense.parameters_grad.*.weight.0', '')
    """
    own = name.partition(".forward.")[0].partition(".parameters")[0].split(".")
    if own[0] != "Cell" or not any(map(_is_number, own[1:-1])):
        return ""
    first, *inner, last = name.split(".")
    return ".".join([first, *("*" if _is_number(part) else part for part in inner), last])


def _is_number(text: str) -> bool:
    return text.isdecimal()

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How calls, Cells and their files are named. Pure text, the field's spelling."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any

FORWARD = "forward"
BACKWARD = "backward"

#: section of support_ops.yaml -> first part of the entry name
PREFIXES = {
    "tensor": "Tensor",
    "ops": "Functional",
    "ops.functional": "Functional",  # the same functions
    "numpy": "Numpy",
    "mint": "Mint",
    "mint.nn.functional": "MintFunctional",
    "mint.distributed": "MintDistributed",
    "communication.comm_func": "Distributed",
    "ops.communication": "Distributed",  # its place since 2.9
    "torch": "Torch",
    "torch.Tensor": "Tensor",
    "torch.nn.functional": "Functional",
}
COLLECTIVE = frozenset(("MintDistributed", "Distributed"))
PRIMITIVE = "Primitive"
JIT = "Jit"
CELL = "Cell"
MODULE = "Module"  # of torch on MindSpore
#: how the names of modules of all layers begin
MODULES = (f"{CELL}.", f"{MODULE}.")

_FOREIGN = re.compile(r"[^a-zA-Z0-9_.:/-]")
#: msprobe's names of the states of Adam, by the names that optimizers have for them
ADAM_STATES = {
    **dict.fromkeys(("exp_avg", "moment1", "moments1"), "exp_avg"),
    **dict.fromkeys(("exp_avg_sq", "moment2", "moments2"), "exp_avg_sq"),
}
_APIS = ("Tensor.", "Functional.", "Mint.", "MintFunctional.")
_IN_PLACE = re.compile(r"_$|\.__i\w+__$|__setitem__|assign|scatter|batch_norm")
_EMPTY = re.compile(r"\.(new_)?empty(_like|_strided)?$")
#: Primitive -> its outputs that no kernel of a CPU ever writes; tests/programs/dirty_memory.py finds them
_RESERVED = {
    "BatchNorm": range(1, 3),
    "LSTM": range(3, 5),
    "Adam": range(3),
    "AdamWeightDecay": range(3),
    "ApplyRMSProp": range(1),
    "ApplyCenteredRMSProp": range(1),
}
_CALL = re.compile(r"^(?!(?:Cell|Module)\.)[^.]+(\.[^.]+)+\.\d+\.(forward|backward)$")
_CELL = re.compile(r"^(?:Cell|Module)\..+\.(forward|backward)\.\d+$")
ALL = 1_000_000  # more tensors than a call has
#: calls that write their first tensor, and those that write any of them
_WRITES_FIRST = re.compile(
    r"(?<!_)_$|__i(add|sub|mul|truediv|floordiv|mod|pow|matmul|and|or|xor|lshift|rshift)__$|__setitem__|[Aa]ssign|[Ii]nplace"
    r"|^Functional\.scatter_(update|add|sub|mul|div|min|max|nd_\w+)$|\.Scatter(?!Nd$)"
)
_WRITES_ANY = re.compile(
    r"batch_?norm|\.(Fused|Sparse)*(Apply|Momentum|Adam|SGD|Lamb|Lars)", re.IGNORECASE
)
NARROWER = (
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
)  # dtypes into which a tensor may not fit


def ranges(numbers: Iterable[int]) -> list[str]:
    """Return numbers in order, those that follow each other as one range.

    >>> ranges([9, 3, 4, 5])
    ['3-5', '9']
    """
    sides = itertools.groupby(enumerate(sorted(set(numbers))), lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in pairs] for _, pairs in sides]
    return [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]


def clean(name: str) -> str:
    """Return the name with everything that readers refuse replaced by ``_``.

    >>> clean("Jit.<lambda>")
    'Jit._lambda_'
    """
    return _FOREIGN.sub("_", name)


def escape_formula(text: str) -> str:
    """Return the text so that no spreadsheet takes it for a formula (readers crash on such strings).

    >>> escape_formula("-inf")
    '_-inf'
    """
    return "_" + text if text[:1] in ("+", "-", "=", "%", "@") else text


def message_of(error: BaseException) -> str:
    """Return the text of an exception for an entry.

    >>> message_of(ValueError("no"))
    'ValueError: no'
    """
    return escape_formula(f"{type(error).__name__}: {error}")[:2000]


def call_names(key: str, number: int) -> tuple[str, str]:
    """Return the forward and the backward entry name of the call ``number`` of an API, Primitive or jit function.

    >>> call_names("Functional.relu", 0)
    ('Functional.relu.0.forward', 'Functional.relu.0.backward')
    """
    return f"{key}.{number}.{FORWARD}", f"{key}.{number}.{BACKWARD}"


def cell_names(key: str, number: int) -> tuple[str, str]:
    """Return the forward and the backward entry name of the call ``number`` of a Cell.

    >>> cell_names("Cell.fc.Dense", 1)
    ('Cell.fc.Dense.forward.1', 'Cell.fc.Dense.backward.1')
    """
    return f"{key}.{FORWARD}.{number}", f"{key}.{BACKWARD}.{number}"


def parameters_grad_name(key: str, number: int) -> str:
    """Return the entry name of the ``number``-th arrival of a Cell's parameter gradients.

    >>> parameters_grad_name("Cell.fc.Dense", 0)
    'Cell.fc.Dense.parameters_grad.0'
    """
    return f"{key}.parameters_grad.{number}"


def by_last_part(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the items by the last part of their names; by the whole names where two of them end alike.

    >>> by_last_part({"fc.weight": 1, "fc.bias": 2}), by_last_part({"a.weight": 1, "b.weight": 2})
    ({'weight': 1, 'bias': 2}, {'a.weight': 1, 'b.weight': 2})
    """
    short = {name.rsplit(".", 1)[-1]: item for name, item in named.items()}
    return short if len(short) == len(named) else {**named}


def custom_key(prefix: str, name: str) -> str:
    """Return the entries' names without number and direction for a function of the user's own.

    >>> custom_key("../mine", "attention")
    '.._mine.attention'
    """
    return clean(f"{prefix}.{name}").replace("/", "_")


def debug_names(name: str, number: int) -> tuple[str, str]:
    """Return the names in debug.json of a saved value and of its gradient.

    >>> debug_names("logits", 0)
    ('logits.0.debug', 'logits_grad.0.debug')
    """
    name = clean(escape_formula(name)).replace("/", "_")
    return f"{name}.{number}.debug", f"{name}_grad.{number}.debug"


def may_modify_inputs(key: str) -> bool:
    """Return whether calls of this key may modify their inputs in place, as far as the name tells.

    >>> may_modify_inputs("Tensor.add_"), may_modify_inputs("Tensor.add"), may_modify_inputs("Cell.fc.Dense")
    (True, False, True)
    """
    return not key.startswith(_APIS) or _IN_PLACE.search(key) is not None


@functools.lru_cache(4096)
def written_inputs(key: str) -> int:
    """Return how many of its first tensors a call may write: none, one or all.

    >>> [written_inputs(f"Tensor.{name}") for name in ("add_", "__iadd__", "__add__", "__invert__", "scatter_add")]
    [1, 1, 0, 0, 0]
    """
    return 1 if _WRITES_FIRST.search(key) else ALL if _WRITES_ANY.search(key) else 0


def reserved_outputs(key: str) -> range | None:
    """Return the outputs of a Primitive that no kernel of a CPU ever writes; None where it writes all.

    >>> reserved_outputs("Primitive.bn.BatchNorm"), reserved_outputs("Cell.rnn.LSTM")
    (range(1, 3), None)
    """
    prefix, _, rest = key.partition(".")
    return _RESERVED.get(rest.rpartition(".")[2]) if prefix == PRIMITIVE else None


@functools.lru_cache(4096)
def written_outputs(key: str) -> int | None:
    """Return how many of its first outputs a call of this key surely writes on CPU; None for all.

    >>> written_outputs("Primitive.bn.BatchNorm"), written_outputs("Mint.empty"), written_outputs("Cell.BatchNorm")
    (1, 0, None)
    >>> written_outputs("Primitive.fn:_DynamicLSTMCPUGPU.LSTM")
    3
    """
    if key.startswith((*MODULES, f"{JIT}.")):
        return None
    reserved = reserved_outputs(key)
    return reserved.start if reserved else 0 if _EMPTY.search(key) else None


def is_full_name(name: str, level: str) -> bool:
    """Return whether a text has the form of a complete entry name that this level can record."""
    return bool(level != "L0" and _CALL.match(name)) or bool(level != "L1" and _CELL.match(name))

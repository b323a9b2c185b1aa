# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Made dumps of small random programs: statements in Cells, forward and backward, and edits of them."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from tests.reading.builders import forward, record, value

#: each gives what a right kernel gives
_KERNELS = {
    "tanh": np.tanh,
    "sin": np.sin,
    "neg": np.negative,
    "cos": np.cos,
    "add": np.add,
    "mul": np.multiply,
    "sub": np.subtract,
}
_OF_TWO = ("add", "mul", "sub")
APIS = tuple(_KERNELS)
_SHAPE = (3, 4)
_CELLS = ("", "left", "right")
_CELL = "Cell.{}.Part.forward.0"
#: Cell -> its parameter
_PARAMETERS = {"left": -4, "right": -5, "first": -4, "second": -5}
_OTHER = {"left": "first", "right": "second"}


class Statement(NamedTuple):
    """One call: a negative source is a value from outside, another one is the statement that made it."""

    api: str
    sources: tuple[int, ...]
    factor: float = 1.0  # a plain argument; the result is multiplied by it
    cell: str = ""
    line: int = 0
    error: float = 0.0  # by how much a kernel is off, relative
    dtype: str = "Float32"
    lost: bool = False  # whether no gradient goes through it


Program = list[Statement]


@st.composite
def programs(draw):
    """A random program; the statements of a Cell stand together."""
    statements = []
    for line in range(draw(st.integers(3, 9))):
        api = draw(st.sampled_from(APIS))
        cell = _CELLS[min(line // 3, len(_CELLS) - 1)]
        sources = st.integers(-3, line - 1 if line else -1) | st.just(_PARAMETERS.get(cell, -1))
        given = tuple(draw(sources) for _ in range(2 if api in _OF_TWO else 1))
        factor = draw(st.sampled_from([1.0, 0.5, 2.0]))
        statements.append(Statement(api, given, factor, cell, line))
    return statements


EDITS = (
    "factor", "api", "source", "exchange", "error", "noise", "dtype", "lost", "left out",
    "twice", "identity", "earlier", "inlined", "renamed", "line",
)  # fmt: skip


def edited(program: Program, kind: str, place: int) -> Program:
    """Return a program with one edit at a statement."""
    place %= len(program)
    own = program[place]
    changed = {
        "factor": lambda: own._replace(factor=own.factor * 1.5),
        "api": lambda: own._replace(api="cos" if len(own.sources) == 1 else "sub"),
        "source": lambda: own._replace(sources=(-2, *own.sources[1:])),
        "exchange": lambda: own._replace(sources=own.sources[::-1]),
        "error": lambda: own._replace(error=0.3),
        "noise": lambda: own._replace(error=3e-6),
        "dtype": lambda: own._replace(dtype="Float16"),
        "lost": lambda: own._replace(lost=True),
        "inlined": lambda: own._replace(cell=""),
        "line": lambda: own._replace(line=0),
    }
    if kind == "renamed":
        return [item._replace(cell=_OTHER.get(item.cell, item.cell)) for item in program]
    if kind in changed:
        return [*program[:place], changed[kind](), *program[place + 1 :]]
    if kind == "left out":
        return _without(program, place)
    if kind in ("twice", "identity"):
        factor = 1.0 if kind == "identity" else 2.0
        return _with(program, place, Statement("neg", (place,), factor, own.cell, 50))
    before = program[place - 1]
    is_free = place > 0 and before.cell == own.cell and place - 1 not in own.sources
    if kind == "earlier" and is_free:
        return _exchanged(program, place)
    return program


def _moved(program: Program, new: dict[int, int]) -> Program:
    """Return the statements with other numbers of their sources."""
    return [
        item._replace(sources=tuple(new.get(source, source) for source in item.sources))
        for item in program
    ]


def _without(program: Program, place: int) -> Program:
    if len(program) < 2:
        return program
    source = program[place].sources[0]
    new = {place: source, **{old: old - 1 for old in range(place + 1, len(program))}}
    return _moved([*program[:place], *program[place + 1 :]], new)


def _with(program: Program, place: int, more: Statement) -> Program:
    new = {old: old + 1 for old in range(place, len(program))}
    behind = _moved(program[place + 1 :], new)
    return [*program[: place + 1], more, *behind]


def _exchanged(program: Program, place: int) -> Program:
    """Return the program with a statement before the one that stands before it."""
    order = [*range(place - 1), place, place - 1, *range(place + 1, len(program))]
    return _moved([program[old] for old in order], {place: place - 1, place - 1: place})


def dump_of(
    program: Program, md5: bool, rate: float = 0.1, step: int = 0
) -> tuple[dict, dict, dict]:
    """Return the entries, the stacks and the Cells of a program: forward, backward and the update."""
    names = _names(program)
    made: dict[int, np.ndarray] = {
        -number: np.random.RandomState(10 * step + number).randn(*_SHAPE).astype("f")
        for number in range(1, 6)
    }
    data, stacks, construct = {}, {}, {}
    for place, (item, name) in enumerate(zip(program, names)):
        given = [made[source] for source in item.sources]
        made[place] = _result(item, given)
        arguments = [*(_record(array, md5) for array in given), value(item.factor)]
        data[name] = forward(arguments, [_record(made[place], md5)])
        stacks[name] = [f"File /me/net.py, line {item.line}, in run, \n line{item.line}()"]
        construct[name] = _CELL.format(item.cell) if item.cell else None
        is_last = item.cell not in [later.cell for later in program[place + 1 :]]
        if item.cell and is_last:
            _add_cell(item.cell, program, made, data, construct, md5)
    gradients = _backward(program, names, made, data, construct, md5)
    _update(gradients, rate, data, md5)
    return data, stacks, construct


def _add_cell(cell, program, made, data, construct, md5) -> None:
    """Add the entry of a Cell, which stands behind those of its calls."""
    own = [place for place, item in enumerate(program) if item.cell == cell]
    given = dict.fromkeys(
        source for place in own for source in program[place].sources if source not in own
    )
    name = _CELL.format(cell)
    data[name] = {
        **forward(
            [_record(made[source], md5) for source in given if source not in _PARAMETERS.values()],
            [_record(made[own[-1]], md5)],
        ),
        "parameters": {"weight": _record(made[_PARAMETERS[cell]], md5)},
    }
    construct[name] = None


def _names(program: Program) -> list[str]:
    counts: dict[str, int] = {}
    names = []
    for item in program:
        number = counts[item.api] = counts.get(item.api, -1) + 1
        names.append(f"Functional.{item.api}.{number}.forward")
    return names


def _result(item: Statement, given: list[np.ndarray]) -> np.ndarray:
    wide = [array.astype("d") for array in given]
    exact = _KERNELS[item.api](*wide) * item.factor * (1 + item.error)
    return exact.astype("e" if item.dtype == "Float16" else "f")


def _slope(item: Statement, number: int, given: list[np.ndarray]) -> np.ndarray:
    """Return the derivative of a call by one of its operands; that of one operand is any that is not zero."""
    if item.api == "mul":
        return given[1 - number]
    if item.api in _OF_TWO:
        return np.full(_SHAPE, -1.0 if (item.api, number) == ("sub", 1) else 1.0)
    return np.cos(given[number])


def _record(array: np.ndarray, md5: bool) -> dict:
    return record(array, md5, dtype="Float16" if array.dtype.char == "e" else "Float32")


def _backward(program, names, made, data, construct, md5) -> dict[str, np.ndarray]:
    """Add the backward entries, and return the gradients of the parameters."""
    arriving: dict[int, np.ndarray] = {len(program) - 1: np.ones(_SHAPE, "f")}
    for place in range(len(program) - 1, -1, -1):
        item = program[place]
        gradient = arriving.get(place)
        if gradient is None or item.lost:
            continue
        leaving = []
        for number, source in enumerate(item.sources):
            slope = _slope(item, number, [made[one] for one in item.sources])
            own = (gradient * slope * item.factor).astype("f")
            leaving.append(own)
            arriving[source] = (arriving.get(source, 0) + own).astype("f")
        name = names[place].replace(".forward", ".backward")
        data[name] = {
            "input": [_record(gradient, md5)],
            "output": [_record(array, md5) for array in leaving],
        }
        construct[name] = construct[names[place]]
    cells = dict.fromkeys(item.cell for item in program if item.cell)
    nothing = np.zeros(_SHAPE, "f")
    return {cell: arriving.get(_PARAMETERS[cell], nothing) for cell in cells}


def _update(gradients: dict[str, np.ndarray], rate: float, data: dict, md5: bool) -> None:
    """Add the gradients of parameters, and the update of an optimizer."""
    for cell, gradient in gradients.items():
        data[f"Cell.{cell}.Part.parameters_grad.0"] = {"weight": [_record(gradient, md5)]}
    names = [value(f"{cell}.weight") for cell in gradients]
    given = [_record(gradient, md5) for gradient in gradients.values()]
    data["Cell.optimizer.SGD.forward.0"] = {
        "input_args": [given],
        "input_kwargs": {"learning_rate": value(rate), "parameters": names},
        "output": [],
    }


def copies(data: dict, place: int, kind: str) -> dict:
    """Return entries of which one lacks something, as other recorders leave it."""
    found = copy.deepcopy(data)
    entry = found[list(found)[place % len(found)]]
    part = entry.get("output") or entry.get("input") or entry.get("weight") or [None]
    if kind == "none":
        part[0] = None
    elif kind == "no numbers" and part[0]:
        part[0].update(Max=None, Min=None, Mean=None, Norm=None)
    elif kind == "nan" and part[0]:
        part[0].update(Max=float("nan"), Mean=float("nan"), Norm=float("nan"))
    elif kind == "error":
        entry["raised"] = "ValueError"
    return found

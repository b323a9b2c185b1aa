# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Prints the numbers of the source code in probe/; exits with 1 where a limit is broken.

Sizes have no limit: a limit on lines is met by width. A reader's minute counts. The limits are those of things that a
reader would call wrong. The program is the number of nodes of the syntax trees; density is nodes for each line of code.
The houses that we admire (httpx, pluggy, structlog, attrs) have a density of 5.3 to 6.5.

    python -m tests.architecture.numbers [ROOT]

ROOT is the folder that holds probe/; without it, this repository. A broken limit is followed by the places that break
it, worst first.
"""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.architecture import layout
from tests.architecture.objects import ClassTable
from tests.architecture.source import FUNCTIONS, Module, read
from tests.support.paths import ROOT

_BROAD = ("Exception", "BaseException")
#: the functions of re that take a pattern
_OF_PATTERNS = ("compile", "fullmatch", "match", "search", "sub", "split", "findall", "finditer")
#: words of the names that probe itself makes: of entries, series, folders and sentences
_OUR_WORDS = re.compile(
    r"(?<![A-Za-z])(forward|backward|parameters|parameters_grad|grad|grad_in|debug|loss|optimizer|learning_rate|Cell|rank|"
    r"step|proc|input|output)(?![A-Za-z])"
)
#: modules whose patterns may have such a word
_OTHER_NAMES = {
    "probe/naming.py": "makes the names of entries",
    "probe/reading/dumps/kernels/tables.py": "MindSpore has made these names of files",
    "probe/reading/check/weights/states.py": "frameworks have made these names in checkpoints",
    "probe/reading/one_run/health/gradient_ends.py": "MindSpore has made these names of functions: rank",
    "probe/reading/one_run/health/losses.py": "MindSpore has made these names of functions: mse_loss, rank",
    "probe/reading/one_run/nan.py": "MindSpore has made these names of functions: mse_loss",
}


@dataclass(frozen=True)
class Number:
    """One number of the source code.

    Attributes:
        measure: its name.
        value: its value.
        limit: its highest allowed value.
        places: the places that make it up, worst first.
    """

    measure: str
    value: float
    limit: float
    places: list[str]

    @property
    def is_broken(self) -> bool:
        """Whether the value is beyond the limit."""
        return self.value > self.limit


def numbers(modules: list[Module]) -> list[Number]:
    """Return the numbers of a package. Sizes have no limit: they are there to look at."""
    return [
        _attributes(modules),
        _listed("methods re-bound at run time", 0, _rebound(modules)),
        _listed("broad excepts", 16, _broad(modules)),
        _listed("regular expressions over names that probe makes", 0, _over_names(modules)),
        _what(modules),
        _longest("longest module, lines", ((module.lines, module.path) for module in modules)),
        _longest("longest function, lines", _functions(modules)),
        _listed("modules in import cycles", 0, _cyclic(modules)),
        Number("lines of probe/", sum(module.lines for module in modules), math.inf, []),
        Number("program of probe/, nodes", sum(module.nodes for module in modules), math.inf, []),
        *(_listed(name, limit, _all(modules, found)) for name, limit, found in _LAYOUT),
    ]


#: (measure, limit, the function that finds its places in a module)
_LAYOUT: tuple[tuple[str, float, Callable[[Module], Iterator[str]]], ...] = (
    ("fmt: skip on anything but a literal table", 0, layout.skipped),
    ("several values in one assignment", 0, layout.assigned_together),
    ("calls with a bundle of arguments", 0, layout.bundles),
    ("methods that are aliases of others", 0, layout.aliases),
    ("type: ignore without a code and a reason", 0, layout.unexplained_ignores),
    ("constants below the first definition", 0, layout.late_constants),
    ("comprehensions in comprehensions", math.inf, layout.nested_comprehensions),
)


def _all(modules: list[Module], find: Callable[[Module], Iterator[str]]) -> Iterator[str]:
    for module in modules:
        yield from find(module)


def rooms(modules: list[Module]) -> list[str]:
    """Return a line for each room: its program, its density, and its heaviest module."""
    by_room: dict[str, list[Module]] = {}
    for module in modules:
        by_room.setdefault(module.path.rpartition("/")[0], []).append(module)
    rows = []
    for room, held in by_room.items():
        nodes = sum(module.nodes for module in held)
        code = sum(module.code_lines for module in held)
        if code:
            dense = max(held, key=lambda module: module.nodes / max(module.code_lines, 1))
            rows.append((nodes, f"{nodes:8} {nodes / code:8.1f}  {room}, densest {dense.path}"))
    return [line for _, line in sorted(rows, reverse=True)]


def heaviest(modules: list[Module], count: int = 10) -> list[str]:
    """Return the functions with most nodes."""
    sizes = [
        (sum(1 for _ in ast.walk(node)), f"{module.path}: {node.name}")
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, FUNCTIONS)
    ]
    return [f"{size:8}  {place}" for size, place in sorted(sizes, reverse=True)[:count]]


def _listed(measure: str, limit: float, places: Iterator[str]) -> Number:
    found = list(places)
    return Number(measure, len(found), limit, found)


def _longest(measure: str, sizes: Iterator[tuple[int, str]]) -> Number:
    ranked = sorted(sizes, reverse=True)
    largest = ranked[0][0] if ranked else 0
    return Number(measure, largest, math.inf, [f"{place}: {size}" for size, place in ranked])


def _attributes(modules: list[Module]) -> Number:
    table = ClassTable(modules)
    sizes = (
        (len(table.attributes(node)), f"{it.path}: {node.name}")
        for it in modules
        for node in it.classes
    )
    return _longest("largest object, attributes through self", sizes)


def _functions(modules: list[Module]) -> Iterator[tuple[int, str]]:
    for module in modules:
        yield from ((size, f"{module.path}: {name}") for name, size in module.functions)


def _rebound(modules: list[Module]) -> Iterator[str]:
    table = ClassTable(modules)
    for module in modules:
        for node in module.classes:
            yield from (
                f"{module.path}: {node.name}.{name}" for name in sorted(table.rebound(node))
            )


def _broad(modules: list[Module]) -> Iterator[str]:
    """Yield every place that catches all exceptions: by except, or by contextlib.suppress."""
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ExceptHandler):
                caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            elif isinstance(node, ast.Call) and "suppress" in (
                getattr(node.func, key, "") for key in ("id", "attr")
            ):
                caught = node.args
            else:
                continue
            if any(item is None or getattr(item, "id", "") in _BROAD for item in caught):
                yield f"{module.path}:{node.lineno}"


def _over_names(modules: list[Module]) -> Iterator[str]:
    """Yield every pattern that has a word of the names that probe makes: it knows by itself what they are made of."""
    for module in modules:
        calls = (node for node in ast.walk(module.tree) if isinstance(node, ast.Call) and node.args)
        for node in calls if module.path not in _OTHER_NAMES else ():
            function = node.func
            if not isinstance(function, ast.Attribute) or function.attr not in _OF_PATTERNS:
                continue
            if isinstance(function.value, ast.Name) and function.value.id == "re":
                texts = (
                    part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)
                )
                if any(isinstance(text, str) and _OUR_WORDS.search(text) for text in texts):
                    yield f"{module.path}:{node.lineno}"


def _what(modules: list[Module]) -> Number:
    found = {
        module.path: sum(word.lower() == "what" for word in module.prose) for module in modules
    }
    words = sum(len(module.prose) for module in modules)
    ranked = sorted(((count, path) for path, count in found.items() if count), reverse=True)
    value = round(1000 * sum(found.values()) / max(words, 1), 1)
    return Number(
        '"what" per 1,000 words of prose', value, 2, [f"{path}: {count}" for count, path in ranked]
    )


def _cyclic(modules: list[Module]) -> Iterator[str]:
    """Yield the modules that import themselves, over others."""
    names = frozenset(module.name for module in modules)
    direct = {module.name: set(module.imports(names)) for module in modules}
    for module in modules:
        seen: set[str] = set()
        waiting = set(direct[module.name])
        while waiting:
            seen |= waiting
            waiting = {name for one in waiting for name in direct[one]} - seen
        if module.name in seen:
            yield module.path


def show(found: list[Number]) -> int:
    """Print numbers as a table, the places of the broken ones below it, and return the exit code."""
    width = max(len(number.measure) for number in found)
    print(f"{'measure':{width}}  {'limit':>7}  {'value':>7}")
    for number in found:
        print(
            f"{number.measure:{width}}  {number.limit:7g}  {number.value:7g}{'  broken' * number.is_broken}"
        )
    broken = [number for number in found if number.is_broken]
    for number in broken:
        print("", f"{number.measure}:", *(f"  {place}" for place in number.places[:20]), sep="\n")
        if len(number.places) > 20:
            print(f"  and {len(number.places) - 20} more")
    return int(bool(broken))


def main(arguments: list[str]) -> int:
    """Print the tables and return the exit code."""
    modules = read(Path(arguments[0]) if arguments else ROOT)
    status = show(numbers(modules))
    print("", " program  density  room", *rooms(modules), sep="\n")
    print("", " program  function", *heaviest(modules), sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

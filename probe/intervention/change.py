# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One change of a training: which calls it reaches, and the calls that a step has. Nothing here needs MindSpore."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from probe.config.messages import nearest
from probe.door import open_file
from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.findings.system import reason_of
from probe.reading.dumps.entry_name import parse

#: the unit of the calls that no Cell holds
OUTSIDE = "(outside of Cells)"
#: the kinds of changes that take names alone, and the sentences about them
KINDS = {
    "float32": "change.float32",
    "cpu": "change.cpu",
    "formula": "change.formula",
    "skip": "change.skip",
}


@dataclass(frozen=True)
class Change:
    """All that is changed in one run.

    Attributes:
        float32: keys of Cells, whose own calls compute in float32, and names of such calls.
        golden: the dump whose outputs are put in; "" for none.
        put_in: names or keys of the calls that get the golden's output.
        cpu: names or keys of the calls that are computed on the host.
        formula: those that are computed by the formula of ``probe replay``.
        skip: keys of Cells that give back their input.
        seed: the seed in place of the program's, or None.
        fault: a planted fault of ``probe drill``, as ``Fault`` has it.
        said: the change in words, for headers.
    """

    float32: tuple[str, ...] = ()
    golden: str = ""
    put_in: tuple[str, ...] = ()
    cpu: tuple[str, ...] = ()
    formula: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    seed: int | None = None
    fault: tuple[Any, ...] = ()
    said: str = ""

    @property
    def sentence(self) -> Sentence:
        """The change in words."""
        parts = [
            say(key, names=list(names))
            for name, key in KINDS.items()
            if (names := getattr(self, name))
        ]
        parts += (
            [say("change.put_in", names=list(self.put_in), golden=self.golden)]
            if self.put_in
            else []
        )
        parts += [say("change.seed", seed=self.seed)] if self.seed is not None else []
        return clauses(*parts) or NOTHING

    def text(self) -> str:
        """Return it as JSON: equal changes have equal texts."""
        return json.dumps(asdict(self), sort_keys=True)


class Calls:
    """The calls of the first step of the unchanged run, as they were written: name, Cell, dtypes, shapes.

    Raise UsageError when there are none.
    """

    def __init__(self, path: str) -> None:
        try:
            with open_file(path) as file:
                self.all: list[dict[str, Any]] = json.load(file)
        except (OSError, ValueError) as error:
            raise UsageError(say("try.unread", reason=reason_of(error))) from None
        if not self.all:
            raise UsageError(say("try.no_call"))
        self._cells = {
            parse(call["name"]).key: parse(call["name"]) for call in self.all if call["is_cell"]
        }

    def resolve(self, change: Change) -> Change:
        """Return a change whose names are exact keys and names; raise UsageError for a name that no call has."""
        found: dict[str, Any] = {
            name: self._exact(f"--{name}", getattr(change, name), name == "skip") for name in KINDS
        }
        return replace(
            change,
            **found,
            put_in=self._exact("--from", change.put_in, True),
            said=str(change.sentence),
        )

    def _exact(
        self, option: str, names: Iterable[str], is_cell_alone: bool = False
    ) -> tuple[str, ...]:
        """Return the keys of the Cells that names mean, with all Cells below them, and the names of calls."""
        found: list[str] = []
        for name in names:
            same = [
                one.path
                for key, one in self._cells.items()
                if name in (key, key.partition(".")[2], one.path)
            ]
            paths = tuple(f"{path}." for path in same or [name])
            below = [
                key for key, one in self._cells.items() if name and f"{one.path}.".startswith(paths)
            ]
            cells = (
                [key for key in below if self._cells[key].path in same] if is_cell_alone else below
            )
            calls = [
                call["name"]
                for call in self.all
                if name in (call["name"], call["name"].rpartition(".")[0])
            ]
            calls += (
                [call["name"] for call in self.all if name == parse(call["name"]).key]
                if not cells
                else []
            )
            if not (cells or calls):
                known = [call["name"] for call in self.all]
                known += [one.path for one in self._cells.values()] + [
                    parse(name).key for name in known
                ]
                hint = nearest(name, known) or next((path for path in known if name in path), "")
                guess = say("option.hint", word=hint) if hint else NOTHING
                raise UsageError(say("try.no_name", option=option, name=name, guess=guess))
            found += cells or (
                [name] if option == "--from" else calls
            )  # without "forward" it is both directions
        return tuple(dict.fromkeys(found))

    def units(self, by: str, kind: str) -> dict[str, tuple[str, ...]]:
        """Return what a bisection divides: the name of a unit, and the keys and names that it changes.

        ``by`` is "cell" (the calls that a Cell makes itself), "layer" (an item of a list of Cells), or "call". For
        float32 only units with numbers of half precision count.
        """
        found: dict[str, list[str]] = {}
        for call in self.all:
            is_half = {"Float16", "BFloat16"} & {*call["inputs"], *call["outputs"]}
            if call["is_cell"] or call.get("is_update") or (kind == "float32" and not is_half):
                continue
            key = (
                call["cell"] if call["cell"] in self._cells else ""
            )  # a Cell with a pre-hook is not known
            path = self._cells[key].path if key else OUTSIDE
            if by == "layer":
                words = path.split(".")
                end = next(
                    (place for place, word in enumerate(words) if word.isdigit()), len(words) - 1
                )
                path = ".".join(words[: end + 1])
            name, member = (
                (call["name"], call["name"]) if by == "call" else (path, key or call["name"])
            )
            if kind != "float32":
                member = call["name"]
            if member not in found.setdefault(name, []):
                found[name].append(member)
        return {name: tuple(members) for name, members in found.items()}

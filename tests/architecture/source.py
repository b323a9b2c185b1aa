# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads the modules of a package: code lines, words of prose, functions, classes, imports."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTIONS)
_NO_CODE = frozenset(
    (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    )
)
#: comments that are no prose: the licence, and orders to tools
_FORMAL = re.compile(r"#:?\s*(Copyright|SPDX|noqa|type:|fmt:|pragma)")
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


@dataclass(frozen=True)
class Module:
    """One file of a package.

    Attributes:
        name: its dotted name.
        path: its path below the folder that holds the package.
        text: its source.
    """

    name: str
    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        """The number of its lines, of any kind."""
        return self.text.count("\n")

    @cached_property
    def docstrings(self) -> list[ast.Constant]:
        """The docstrings in it."""
        nodes = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, _DOCUMENTED) and ast.get_docstring(node)
        ]
        return [node.body[0].value for node in nodes]  # type: ignore[attr-defined]

    @cached_property
    def _tokens(self) -> list[tokenize.TokenInfo]:
        return list(tokenize.generate_tokens(io.StringIO(self.text).readline))

    @property
    def comments(self) -> list[tuple[int, str]]:
        """The comments in it, each with its line."""
        return [
            (token.start[0], token.string)
            for token in self._tokens
            if token.type == tokenize.COMMENT
        ]

    @cached_property
    def nodes(self) -> int:
        """The size of its program: the number of nodes of its syntax tree."""
        return sum(1 for _ in ast.walk(self.tree))

    @property
    def code_lines(self) -> int:
        """The number of lines that are neither blank, nor a comment, nor part of a docstring."""
        lines: set[int] = set()
        for token in self._tokens:
            if token.type not in _NO_CODE:
                lines.update(range(token.start[0], token.end[0] + 1))
        for docstring in self.docstrings:
            lines.difference_update(
                range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1)
            )
        return len(lines)

    @property
    def prose(self) -> list[str]:
        """The words of its docstrings and comments."""
        comments = [token.string for token in self._tokens if token.type == tokenize.COMMENT]
        texts = [str(docstring.value) for docstring in self.docstrings]
        texts += [comment for comment in comments if not _FORMAL.match(comment)]
        return [word for text in texts for word in _WORD.findall(text)]

    @cached_property
    def functions(self) -> list[tuple[str, int]]:
        """Each function with the number of its lines."""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, FUNCTIONS)]
        return [(node.name, (node.end_lineno or node.lineno) - node.lineno + 1) for node in nodes]

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        """The classes in it."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]

    def imports(self, names: frozenset[str]) -> Iterator[str]:
        """Yield the modules of the package that it imports: at any depth, and for types alone too.

        Args:
            names: all modules of the package.
        """
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in names)
            elif isinstance(node, ast.ImportFrom):
                base = self._absolute(node)
                for alias in node.names:
                    found = f"{base}.{alias.name}" if f"{base}.{alias.name}" in names else base
                    if found in names:
                        yield found

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        if not self.path.endswith("__init__.py"):
            parts = parts[:-1]
        parts = parts[: len(parts) - node.level + 1]
        return ".".join([*parts, *filter(None, [node.module])])


def read(root: Path, package: str = "probe") -> list[Module]:
    """Return the modules of a package that lies in a folder."""
    found = []
    for path in sorted((root / package).rglob("*.py")):
        relative = path.relative_to(root)
        name = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
        found.append(_module(name, relative.as_posix(), path.read_text("utf-8")))
    return found


#: many tests read the same modules: each is parsed once in a process
_module = lru_cache(maxsize=None)(Module)

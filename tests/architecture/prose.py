# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Prints the numbers of the English texts beside their limits; exits with 1 where a limit is broken.

    python -m tests.architecture.prose [ROOT]

Texts are the documents (README.md, docs/, the pages of tests/ and benchmarks/, the other English pages at the top) and
the messages: strings of several words in probe/ that are no docstrings. Openings of sentences are looked at in
docstrings too. Code blocks are left out, and a code span counts as one word. A cell of a table is a text of its own;
texts of fewer than four words are labels, and do not count.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.numbers import Number, show
from tests.architecture.source import Module, read
from tests.support.paths import ROOT

#: the most words of a sentence
LONG = 25
#: a string of fewer words is a key or a label, no message
_MESSAGE = 4
_OPENING = re.compile(r"\W*(What|Where)\b")
_WORD = re.compile(r"[A-Za-z0-9][\w'./%-]*")
_END = re.compile(r"(?<=[.!?…])[\"')»”]?\s+(?=[\"'(\[“*]*[A-Z0-9])")
_BLOCK = re.compile(r"^\s*([*+-]|\d+\.|#+|\||>)\s*")


def documents(root: Path) -> list[Path]:
    """Return the English documents of a repository."""
    found = [*root.glob("*.md"), *(root / "docs").glob("*.md"), *(root / ".github").rglob("*.md")]
    found += [*(root / "tests").rglob("README.md"), *(root / "benchmarks").glob("README.md")]
    return sorted(path for path in found if not path.name.endswith(".zh-CN.md"))


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield each text of a Markdown document with the number of its first line, without code and marks."""
    begin, gathered = 0, [""]
    is_code = False
    blank = True
    for number, raw in enumerate([*text.splitlines(), ""], 1):
        is_fence = raw.lstrip().startswith("```")
        is_code ^= is_fence
        line = "" if is_fence else raw
        if (is_code and line) or (line.startswith("    ") and blank):
            continue
        match = _BLOCK.match(line)
        if (match or not line.strip()) and gathered != [""]:
            yield from ((begin, part) for part in _plain(" ".join(gathered)))
            gathered = [""]
        blank = not line.strip()
        if line.strip():
            begin = number if gathered == [""] else begin
            gathered.append(line.strip())


def _plain(text: str) -> list[str]:
    text = re.sub(r"`[^`]*`", "X", text.strip())
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    if text.startswith("|"):
        return [cell.strip() for cell in text.strip("|").split("|") if _WORD.search(cell)]
    return [re.sub(r"\*\*|__", "", _BLOCK.sub("", text))]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; shorter ones than a message are labels."""
    return [part for part in _END.split(text) if len(_WORD.findall(part)) >= _MESSAGE]


def messages(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module that have several words and are no docstrings, with their lines."""
    docstrings = {id(node) for node in module.docstrings}
    inside = {
        id(part)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                part.value if isinstance(part, ast.Constant) else "value" for part in node.values
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings | inside
        ):
            text = re.sub(r"%[sdr]", "value", node.value)
        else:
            continue
        for part in text.split("\n"):
            if " " in part and len(_WORD.findall(part)) >= _MESSAGE:
                yield node.lineno, part


def numbers(root: Path) -> list[Number]:
    """Return the numbers of the texts of a repository."""
    pages = [
        (f"{path.relative_to(root).as_posix()}:{line}", text)
        for path in documents(root)
        for line, text in paragraphs(path.read_text("utf-8"))
    ]
    told = [
        (f"{module.path}:{line}", text) for module in read(root) for line, text in messages(module)
    ]
    docstrings = [
        (f"{module.path}:{node.lineno}", " ".join(text.split()))
        for module in read(root)
        for node in module.docstrings
        for text in re.split(r"\n\s*\n", str(node.value))
    ]
    return [
        _long("documents", pages),
        _long("messages", told),
        _what(pages + told),
        _opening(pages + told + docstrings),
    ]


def _long(kind: str, texts: list[tuple[str, str]]) -> Number:
    sizes = [(len(_WORD.findall(it)), place, it) for place, text in texts for it in sentences(text)]
    beyond = sorted((size for size in sizes if size[0] > LONG), reverse=True)
    places = [f"{place}: {size} words: {sentence[:60]}" for size, place, sentence in beyond]
    part = round(100 * len(beyond) / max(len(sizes), 1), 1)
    return Number(f"sentences of more than {LONG} words in {kind}, %", part, 5, places)


def _what(texts: list[tuple[str, str]]) -> Number:
    words = [(place, word) for place, text in texts for word in _WORD.findall(text)]
    places = [place for place, word in words if word.lower() == "what"]
    return Number(
        '"what" per 1,000 words of texts',
        round(1000 * len(places) / max(len(words), 1), 1),
        2,
        places,
    )


def _opening(texts: list[tuple[str, str]]) -> Number:
    found = [(place, it) for place, text in texts for it in sentences(text) if _OPENING.match(it)]
    places = [
        f"{place}: {sentence[:60]}" for place, sentence in found if not sentence.endswith("?")
    ]
    return Number('sentences that begin with "What" or "Where"', len(places), 0, places)


def main(arguments: list[str]) -> int:
    """Print the table and return the exit code."""
    return show(numbers(Path(arguments[0]) if arguments else ROOT))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

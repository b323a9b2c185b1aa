# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The parts of a Markdown document: headings, code blocks, tables, links, anchors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.support.paths import ROOT

CODE = re.compile(r"(`+)(.+?)\1")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
#: documents of which the Chinese ones are in docs/zh/ under the same name
MIRRORED = (
    "automation", "check", "choosing", "doctor", "files", "find", "from-msprobe", "glossary", "golden", "guide",
    "intervention", "large-runs", "monitor", "pytorch", "reading", "repeatable", "replay", "run", "settings", "sharded",
    "torch",
)  # fmt: skip
#: English document: its Chinese one
PAIRS = {
    "README.md": "README.zh-CN.md",
    **{f"docs/{name}.md": f"docs/zh/{name}.md" for name in MIRRORED},
}


def every_page():
    """Return all documents of the repository, in both languages."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")]
    found += [*(ROOT / "tests").rglob("README.md"), ROOT / "benchmarks" / "README.md"]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


@dataclass(frozen=True)
class Page:
    """One document.

    Attributes:
        name: its path below the root of the repository.
        text: its text.
    """

    name: str
    text: str

    @cached_property
    def parts(self):
        """Its lines as (kind, text): code blocks, headings, rows of tables and other lines."""
        found, fence, blank = [], "", True
        for line in self.text.splitlines():
            stripped = line.strip()
            if fence:
                found[-1][1].append(line)
                fence = "" if stripped == fence else fence
            elif stripped.startswith("```"):
                fence = "```"
                found.append(("code", [line]))
            elif line.startswith("    ") and (blank or (found and found[-1][0] == "code")):
                if not found or found[-1][0] != "code" or found[-1][1][0].startswith("```"):
                    found.append(("code", []))
                found[-1][1].append(line)
            elif not stripped:
                if found and found[-1][0] == "code":
                    found[-1][1].append("")
            elif re.match(r"#{1,6} ", line):
                found.append(("heading", [line]))
            else:
                found.append(("row" if line.startswith("|") else "line", [line]))
            blank = not stripped
        return [(kind, "\n".join(lines).rstrip()) for kind, lines in found]

    @property
    def headings(self):
        """Its headings: level and text."""
        lines = [text for kind, text in self.parts if kind == "heading"]
        return [(len(line) - len(line.lstrip("#")), line.lstrip("# ")) for line in lines]

    @property
    def blocks(self):
        """Its code blocks."""
        return [text for kind, text in self.parts if kind == "code"]

    @property
    def rows(self):
        """The rows of its tables: for each the cells as texts."""
        rows = [text for kind, text in self.parts if kind == "row"]
        return [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip()[1:-1])] for row in rows
        ]

    @property
    def prose(self):
        """Its text without code blocks and code spans."""
        return CODE.sub("", "\n".join(text for kind, text in self.parts if kind != "code"))

    @property
    def links(self):
        """The targets of its links."""
        return [target for mark, _, target in LINK.findall(self.prose) if not mark]

    @property
    def pictures(self):
        """Its pictures: description and file."""
        return [(text, target) for mark, text, target in LINK.findall(self.prose) if mark]

    @cached_property
    def anchors(self):
        """The anchors of its headings, as a Git host makes them."""
        seen, found = {}, set()
        for _, heading in self.headings:
            plain = LINK.sub(r"\2", heading).replace("`", "").lower()
            slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
            count = seen[slug] = seen.get(slug, -1) + 1
            found.add(f"{slug}-{count}" if count else slug)
        return found


def page(name: str) -> Page:
    """Return a document by its path below the root."""
    return Page(name, Path(ROOT, name).read_text("utf-8"))

# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Every example of the guide and of the page on reading runs by itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import probe

DOCS = Path(__file__).parent.parent / "docs"
#: pages of examples, and their headings under which there need not be one
PAGES = {"guide.md": (), "reading.md": ("Broken and unusual dumps",)}
#: (page, heading) -> the examples under it
SECTIONS = {
    (page, heading): re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for page, without in PAGES.items()
    for heading, _, text in (
        part.partition("\n") for part in re.split(r"^## ", (DOCS / page).read_text("utf-8"), flags=re.MULTILINE)[1:]
    )
    if heading not in without
}
EXAMPLES = [
    pytest.param(example, id=heading if len(found) == 1 else f"{heading} {number}")
    for (_, heading), found in SECTIONS.items()
    for number, example in enumerate(found)
]


def test_every_section_has_an_example():
    assert SECTIONS
    assert [heading for heading, found in SECTIONS.items() if not found] == []


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_runs(example, tmp_path):
    (tmp_path / "example.py").write_text(example, "utf-8")
    path = os.pathsep.join([str(Path(probe.__file__).parent.parent), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "example.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path)},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert not list(tmp_path.rglob("dump_error_info.log"))

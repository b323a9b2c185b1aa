# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of the report in docs/report/: a small GPT on four ranks, golden and with another scale.

    python docs/pictures.py [--runs FOLDER] [--out FOLDER] [--form webp]

It needs msrun (of MindSpore) and Chromium; `make report-test` installs the latter. ``--runs`` keeps the two runs, or
takes them where they are there already.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from probe.__main__ import main as probe
from tests.support.browser import Browser
from tests.support.launch import launch

RANKS, STEPS, CHANGE = 4, 6, "scale"
VIEWS = ("overview", "tree", "calls", "call", "steps", "ranks")
#: the dark pictures; the others are light
DARK = ("call", "ranks")


def shoot(page: Path, language: str, out: Path, form: str) -> None:
    """Write a picture of each view."""
    with Browser(1280, 860) as browser:
        for view in VIEWS:
            browser.dark(view in DARK)
            browser.open(page, f"#v={view}" + ("&o=-rel" if view == "calls" else ""))
            options = {} if form == "png" else {"quality": 70}
            (out / f"{view}.{language}.{form}").write_bytes(browser.picture(form, **options))
            assert not browser.errors, browser.errors


def main() -> None:
    """Record, report and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "report")
    parser.add_argument("--form", default="webp", choices=("webp", "png", "jpeg"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        runs = given.runs or Path(name) / "runs"
        if not (runs / "mine").exists():
            launch("../report/training.py", RANKS, runs, STEPS, CHANGE, limit=900)
        given.out.mkdir(parents=True, exist_ok=True)
        for language in ("en", "zh"):
            page = Path(name) / f"{language}.html"
            probe(
                [
                    "report",
                    str(runs / "golden"),
                    str(runs / "mine"),
                    "-o",
                    str(page),
                    "--lang",
                    language,
                ]
            )
            shoot(page, language, given.out, given.form)
    size = sum(path.stat().st_size for path in given.out.iterdir())
    print(f"{given.out}: {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()

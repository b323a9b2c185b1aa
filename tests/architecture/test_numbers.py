# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The numbers of the source code: each limit is broken by one violation in a tree that is otherwise clean."""

from __future__ import annotations

import pytest

from tests.architecture.numbers import main, numbers
from tests.architecture.source import read
from tests.support.paths import ROOT


def tree(folder, files):
    """Write a package with these modules and return the folder."""
    for name, text in {"__init__": '"""Nothing."""\n', **files}.items():
        path = folder / "probe" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def values(folder):
    return {number.measure: number.value for number in numbers(read(folder))}


def broken(folder):
    """Return the measures whose limit is broken, each with its places."""
    return {number.measure: number.places for number in numbers(read(folder)) if number.is_broken}


def assigning(count, first=0):
    return [f"        self.a{i} = {i}" for i in range(first, first + count)]


def lines(*parts):
    return (
        "\n".join(line for part in parts for line in ([part] if isinstance(part, str) else part))
        + "\n"
    )


INIT = "    def __init__(self):"


def test_a_clean_tree_breaks_no_limit(tmp_path, capsys):
    tree(tmp_path, {"good": lines("class Good:", INIT, assigning(12))})
    assert broken(tmp_path) == {}
    assert main([str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].split() == ["measure", "limit", "value"]
    assert "broken" not in shown


ATTRIBUTES = "largest object, attributes through self"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (lines("class Fat:", INIT, assigning(13)), 13),
        (
            lines(
                "class Fat:",
                INIT,
                assigning(12),
                "    def later(self):",
                "        self.b = 1",
                "        self.a0 = 2",
            ),
            13,
        ),
        (lines("class Base:", INIT, assigning(7), "class Fat(Base):", INIT, assigning(6, 7)), 13),
        (
            lines(
                "class Fat:",
                INIT,
                assigning(12),
                "        with open('x') as self.file:",
                "            pass",
            ),
            13,
        ),
        (lines("@dataclass", "class Fat:", [f"    a{i}: int" for i in range(13)]), 13),
        (lines("@dataclass(frozen=True)", "class Fine:", [f"    a{i}: int" for i in range(13)]), 0),
        (lines("class Fine(NamedTuple):", [f"    a{i}: int" for i in range(13)]), 0),
        (
            lines(
                "class Fine:",
                INIT,
                assigning(12),
                "    def later(self, other):",
                "        other.b = 1",
            ),
            12,
        ),
    ],
)
def test_attributes_of_an_object_are_counted_with_those_of_its_bases(tmp_path, text, count):
    tree(tmp_path, {"classes": text})
    assert values(tmp_path)[ATTRIBUTES] == count
    assert broken(tmp_path) == {}


REBOUND = "methods re-bound at run time"


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (["def put(self): ...", "def close(self):", "    self.put = print"], "put"),
        (["def _other(self): ...", "def close(self):", "    self.put = self._other"], "put"),
        (
            [
                "def _a(self): ...",
                "def close(self):",
                "    self.x, self.put = 1, print if self.x else self._a",
            ],
            "put",
        ),
        (["def put(self): ...", "def __init__(self):", "    self.put = print"], "put"),
        (["def _other(self): ...", "def __init__(self):", "    self._call = self._other"], None),
        (
            [
                "@property",
                "def put(self): ...",
                "@put.setter",
                "def put(self, to): ...",
                "def x(self):",
                "    self.put = 1",
            ],
            None,
        ),
    ],
)
def test_a_method_that_is_re_bound_is_found(tmp_path, body, name):
    tree(tmp_path, {"classes": lines("class Pace:", [f"    {line}" for line in body])})
    assert broken(tmp_path) == ({REBOUND: [f"probe/classes.py: Pace.{name}"]} if name else {})


def test_a_method_of_a_base_class_that_is_re_bound_is_found(tmp_path):
    base = lines("class Base:", "    def put(self): ...")
    tree(
        tmp_path,
        {"base": base, "pace": lines("class Pace(base.Base):", INIT, "        self.put = print")},
    )
    assert broken(tmp_path) == {REBOUND: ["probe/pace.py: Pace.put"]}


@pytest.mark.parametrize(
    "text",
    [
        "try: ...\nexcept Exception: ...\n",
        "try: ...\nexcept BaseException as error: ...\n",
        "try: ...\nexcept: ...\n",
        "try: ...\nexcept (OSError, Exception): ...\n",
        "with contextlib.suppress(Exception): ...\n",
    ],
)
def test_the_seventeenth_broad_except_is_found(tmp_path, text):
    narrow = "try: ...\nexcept (OSError, ValueError): ...\nwith contextlib.suppress(OSError): ...\n"
    tree(tmp_path, {"broad": text * 16 + narrow})
    assert broken(tmp_path) == {}
    tree(tmp_path, {"store/one": text})
    assert values(tmp_path)["broad excepts"] == 17
    assert "probe/store/one.py:" in "".join(broken(tmp_path)["broad excepts"])


WHAT = '"what" per 1,000 words of prose'


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        (r"rank(\d*)", 1),
        (r"(.*)\.(forward|backward)\.(\d+)", 1),
        (r"Cell\..*", 1),
        (r"optimizer\d*", 1),
        (r"batch_norm|frankly|stepping", 0),
    ],
)
@pytest.mark.parametrize("call", ['re.compile(r"{}")', 're.fullmatch(rf"{}{{x}}", text)'])
def test_a_pattern_over_a_name_that_probe_makes_is_found(tmp_path, pattern, count, call):
    tree(tmp_path, {"good": f"import re\n\nx = {call.format(pattern)}\n"})
    assert values(tmp_path)["regular expressions over names that probe makes"] == count


@pytest.mark.parametrize(
    "form", ['"""{}"""\n', "# {}\n", 'def function():\n    """{}"""\n', "#: {}\nx = 1\n"]
)
def test_what_in_docstrings_and_comments_is_counted(tmp_path, form):
    tree(tmp_path, {"prose": form.format("word " * 999 + "what is that")})
    assert broken(tmp_path) == {}  # 1 in 1,003
    tree(tmp_path, {"prose": form.format("word " * 990 + "What is what. And what?")})
    assert broken(tmp_path) == {WHAT: ["probe/prose.py: 3"]}


def test_what_in_code_and_in_the_licence_is_not_counted(tmp_path):
    tree(
        tmp_path, {"prose": '# Copyright what\nwhat = "what what"\nwhatever = what  # noqa: what\n'}
    )
    assert values(tmp_path)[WHAT] == 0


def test_sizes_are_shown_and_have_no_limit(tmp_path):
    tree(tmp_path, {"module": "\n" * 1000 + "def long():\n" + "    x = 1\n" * 200})
    assert broken(tmp_path) == {}
    assert values(tmp_path)["longest module, lines"] == 1201
    assert values(tmp_path)["longest function, lines"] == 201
    assert values(tmp_path)["lines of probe/"] == 1202


@pytest.mark.parametrize(
    "back",
    [
        "import probe.store.a\n",
        "from probe.store import a\n",
        "from probe.store.a import name\n",
        "from . import a\n",
        "from .a import name\n",
        "def late():\n    from probe.store.a import name\n",
        "if TYPE_CHECKING:\n    from probe.store.a import name\n",
        "from probe.store import name\n",
    ],
)
def test_an_import_cycle_is_found_over_functions_types_and_packages(tmp_path, back):
    tree(
        tmp_path,
        {
            "store/__init__": "from probe.store.a import name\n",
            "store/a": "name = 1\n",
            "store/b": back,
        },
    )
    assert broken(tmp_path) == {}
    tree(
        tmp_path,
        {
            "store/a": "from probe.store import c\nname = 1\n",
            "store/c": "from probe.store import b\n",
        },
    )
    expected = ["probe/store/a.py", "probe/store/b.py", "probe/store/c.py"]
    if back == "from probe.store import name\n":
        expected.insert(0, "probe/store/__init__.py")
    assert broken(tmp_path) == {"modules in import cycles": expected}


def test_a_broken_limit_is_shown_with_its_places_and_fails_the_check(tmp_path, capsys):
    body = ["def put(self): ...", "def close(self):", "    self.put = print"]
    tree(tmp_path, {"classes": lines("class Pace:", [f"    {line}" for line in body])})
    assert main([str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "1  broken" in shown
    assert "\nmethods re-bound at run time:\n  probe/classes.py: Pace.put\n" in shown


@pytest.mark.medium  # `make check` runs the program itself
def test_this_repository_is_measured():
    found = values(ROOT)
    assert len(found) == 17
    assert found["lines of probe/"] > 10_000

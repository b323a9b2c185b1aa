# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Code is found in a function by its syntax, exactly once, and other code takes its place."""

from __future__ import annotations

import pytest

from tests.support.planting import replaced, spots

CODE = '''"""Läuft."""
ROWS = {"shape": 1, "dtype": 2}


class Journal:
    def append(self, data):
        # a comment with len(data) > 1
        if (
            len(data)
            > 1
        ):
            self.count += 1
            self.size = "é" and len(data)
        return len(data)

    def close(self):
        def inner(): return self.size

        self.size = 0
'''


@pytest.mark.parametrize(
    ("place", "wanted", "instead", "old", "new"),
    [
        (
            "store:Journal.append",
            "len(data) > 1",
            "len(data) >= 1",
            "len(data)\n            > 1",
            "(len(data) >= 1)",
        ),
        (
            "store:Journal.append",
            "self.size = 'é' and len(data)",
            "a = 1\nb = 2",
            'self.size = "é" and len(data)',
            "a = 1\n            b = 2",
        ),
        ("store:Journal.close.inner", "self.size", "1", "return self.size", "return (1)"),
        ("store:Journal.close", "self.size = 0", "pass", "self.size = 0", "pass"),
        ("store:ROWS", "'shape'", "'name'", '"shape"', "('name')"),
    ],
)
def test_one_spot_is_replaced_and_the_rest_stays(place, wanted, instead, old, new):
    assert CODE.count(old) == 1
    assert replaced(CODE, place, wanted, instead) == CODE.replace(old, new)


@pytest.mark.parametrize(
    ("place", "wanted", "count"),
    [
        ("store:Journal.append", "len(data)", 3),
        ("store:Journal.append", "len(data) > 2", 0),
        ("store:Journal.close", "len(data) > 1", 0),
        ("store:Journal.nothing", "len(data) > 1", 0),
    ],
)
def test_code_that_is_not_there_once_is_refused(place, wanted, count):
    assert len(spots(CODE, place, wanted)) == count
    with pytest.raises(ValueError, match=f"{count} times"):
        replaced(CODE, place, wanted, "1")

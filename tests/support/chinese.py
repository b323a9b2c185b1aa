# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Finds English that is left in a Chinese answer."""

from __future__ import annotations

import re

#: two words in a row; a name with a dot, a digit, a dash or an underscore is none
_WORDS = re.compile(r"(?<![\w./\\-])[A-Za-z']{2,}(?: [A-Za-z']{2,})+(?![\w./\\-])", re.ASCII)
_CODE = re.compile(r"`[^`]*`")


def english_left(answer, *names):
    """Return two and more English words in a row, outside of code in backticks and of names.

    Args:
        answer: the text.
        names: texts of the user or of the program that may stand in it.
    """
    answer = _CODE.sub("·", answer)
    for name in sorted(map(str, names), key=len, reverse=True):
        answer = answer.replace(name, "·")
    return _WORDS.findall(answer)

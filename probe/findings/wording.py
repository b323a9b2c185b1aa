# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A text in each language, for tables in code. It has no facts; a text with facts is a ``Sentence``."""

from __future__ import annotations

from typing import NamedTuple

from probe.findings.sentence import LANGUAGES


class Wording(NamedTuple):
    """The English and the Chinese form of a text, in the order of ``LANGUAGES``.

    >>> Wording("the page", "网页文件").text("zh")
    '网页文件'
    """

    english: str
    chinese: str

    def text(self, language: str) -> str:
        """Return the text in a language: "en" or "zh"."""
        return self[LANGUAGES.index(language)]

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Says the place of a value in a call: an input, an output, an argument."""

from __future__ import annotations

from typing import Union

from probe.findings.sentence import Sentence, say

#: the first word of a place -> its sentence
_PLACES = {
    "input": "compare.input", "output": "compare.output", "kwargs": "compare.argument",
    "attributes": "compare.attribute", "model_parameters": "compare.model_parameter",
}  # fmt: skip
#: a name as it stands in the dump, or words for the thing
Name = Union[str, Sentence]


def place_words(place: str) -> Name:
    """Return a place in words.

    >>> [str(place_words(place)) for place in ("input.1", "kwargs.mask", "output.0", "weight.0")]
    ['input 1', 'argument mask', 'output 0', 'weight.0']
    """
    word, _, rest = place.partition(".")
    return say(_PLACES[word], place=rest) if word in _PLACES else place

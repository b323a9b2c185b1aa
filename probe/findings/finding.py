# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The form that all findings share: fields, and one sentence about them."""

from __future__ import annotations

import dataclasses
from typing import Any

from probe.findings.sentence import Sentence


class Finding:
    """Something that is told to the user. A kind of finding is a dataclass derived from this.

    Attributes:
        said: one sentence about it.
    """

    said: Sentence

    @property
    def sentence(self) -> str:
        """The sentence in English."""
        return str(self.said)

    def to_dict(self) -> dict[str, Any]:
        """Return its fields, the English sentence, and the key and the facts of the sentence, for JSON."""
        fields = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)  # type: ignore[arg-type]  # each kind is a dataclass
            if field.name != "said"
        }
        return {**fields, "sentence": self.sentence, **self.said.to_dict()}

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads YAML so that the same text means the same as in JSON, or is an error."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

from probe.config.json_reader import DEEPEST, TOO_DEEP, duplicate, mistake, whole_number
from probe.config.messages import shorten
from probe.findings.sentence import Sentence, say
from probe.findings.system import foreign

_TAG = "tag:yaml.org,2002:"
_EXPONENT = re.compile(
    r"-?\d+(?:\.\d+)?[eE][-+]?\d+$"
)  # numbers of JSON that YAML 1.1 takes for texts: 1e4


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without the traps of YAML 1.1, with errors for duplicate keys."""

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a node, at most ``DEEPEST`` levels deep."""
        if self._depth > DEEPEST:  # texts and numbers are nodes too
            raise _error(ComposerError, TOO_DEEP, self.peek_event().start_mark)  # type: ignore[no-untyped-call]  # of yaml
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Compose a mapping. Merged keys (<<) are not in it yet, so that they may be overridden."""
        node = super().compose_mapping_node(anchor)
        keys: dict[tuple[str, str], Any] = {}
        for key, _ in node.value:
            first = keys.setdefault((key.tag, str(key.value)), key)
            if first is not key:
                problem = duplicate(key.value, first.start_mark.line + 1)
                raise _error(ComposerError, problem, key.start_mark)
        return node

    def construct_number(self, node: Any) -> Any:
        """Construct a number as JSON reads it. YAML 1.1 would read 010 as 8, and 1:30 as 90."""
        try:
            return json.loads(node.value, parse_int=whole_number)
        except ValueError as error:
            problem = say("settings.no_number", value=shorten(node.value))
            raise _error(ConstructorError, problem, node.start_mark) from error


_Loader.add_implicit_resolver(f"{_TAG}float", _EXPONENT, list("-0123456789"))
_Loader.add_constructor(f"{_TAG}int", _Loader.construct_number)
_Loader.add_constructor(f"{_TAG}float", _Loader.construct_number)
_Loader.add_constructor(f"{_TAG}timestamp", lambda loader, node: node.value)  # JSON has no dates


def parse(text: str) -> Any:
    """Return the value that a YAML text stands for; raise SettingsError naming the line."""
    try:
        return yaml.load(text, _Loader)
    except yaml.reader.ReaderError as error:
        wrong = say("settings.character", character=f"{error.character:#x}")
        raise mistake(text[: error.position], wrong) from error
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark.index if error.problem_mark else 0
        raise mistake(text[:place], _problem(error)) from error


def _problem(error: yaml.MarkedYAMLError) -> Sentence:
    """Return an error of ours, or the words of PyYAML."""
    own: Any = error.problem
    if isinstance(own, Sentence):
        return own
    words = ", ".join(filter(None, (error.context, error.problem)))
    return say("settings.tab", reason=foreign(words)) if r"'\t'" in words else foreign(words)


def _error(kind: type[yaml.MarkedYAMLError], problem: Sentence, mark: Any) -> yaml.MarkedYAMLError:
    """Return an error of YAML whose problem is a sentence."""
    given: Any = problem
    return kind(None, None, given, mark)

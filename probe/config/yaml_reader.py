# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Reads YAML so that the same text means the same as in JSON, or is an error."""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from probe.config.file_reader import DEEPEST, LongNumber, duplicate, mistake, too_deep, whole_number
from probe.config.messages import shorten
from probe.errors import SettingsError

_TAG = "tag:yaml.org,2002:"
#: plain scalars with a meaning in YAML 1.1 that no setting needs: dates, and a lone "="
_WITHOUT_MEANING = frozenset({f"{_TAG}timestamp", f"{_TAG}value"})
#: numbers of JSON that YAML 1.1 takes for texts: 1e4
_EXPONENT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without the traps of YAML 1.1, with errors for duplicate keys."""

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a node, at most ``DEEPEST`` levels deep."""
        self._depth += 1
        if self._depth > DEEPEST + 1:  # texts and numbers are nodes too
            raise too_deep(self.peek_event().start_mark.line + 1)  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Compose a mapping. Merged keys (<<) are not in it yet, so that they may be overridden."""
        node = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                name, line = (key.tag, key.value), key.start_mark.line + 1
                if name in lines:
                    raise duplicate(key.value, line, lines[name])
                lines[name] = line
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """Construct a value. PyYAML raises many kinds of errors for a tag that does not fit its value."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError, OverflowError) as error:
            problem = f"{shorten(node.value)} does not fit its tag {node.tag.replace(_TAG, '!!')}. Remove the tag."
            raise ConstructorError(None, None, problem, node.start_mark) from error

    def construct_whole(self, node: Any) -> int | LongNumber:
        """Construct a whole number, or refuse the notations that mean another number than they seem to."""
        text = str(self.construct_scalar(node))
        self._refuse_sixties(node, text)
        if _DECIMAL.fullmatch(text):
            return whole_number(text.replace("_", ""))
        number = self.construct_yaml_int(node)
        if re.match("[-+]?0[0-9_]", text):
            means = f"YAML reads {shorten(text)[1:-1]} as an octal number, {shorten(number)}."
            raise ConstructorError(None, None, f"{means} Write it without 0 in front, or in quotes.", node.start_mark)
        return int(number)

    def construct_decimal(self, node: Any) -> float:
        """Construct a number with a point or an exponent."""
        self._refuse_sixties(node, str(self.construct_scalar(node)))
        return float(self.construct_yaml_float(node))

    @staticmethod
    def _refuse_sixties(node: Any, text: str) -> None:
        if ":" in text:
            problem = f"YAML reads {shorten(text)[1:-1]} as a number of base 60. Put it in quotes, or write the number."
            raise ConstructorError(None, None, problem, node.start_mark)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in pairs if tag not in _WITHOUT_MEANING]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_constructor(f"{_TAG}int", _Loader.construct_whole)
_Loader.add_constructor(f"{_TAG}float", _Loader.construct_decimal)
_Loader.add_implicit_resolver(f"{_TAG}float", re.compile(f"(?:{_EXPONENT.pattern})$"), list("-+.0123456789"))


def parse(text: str) -> Any:
    """Return the value that a YAML text stands for.

    Raises:
        SettingsError: naming the line.
        RecursionError: for a text that is nested too deeply.
    """
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if mark is None:
            raise SettingsError(str(error.problem)) from error
        raise mistake(mark.line + 1, mark.column + 1, _problem(error)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SettingsError(f"line {line}: the character {error.character:#x} is not allowed. Remove it.") from error


def _problem(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "not YAML"
    if problem.startswith("but found"):  # the second half of a sentence
        return f"{error.context} {problem}"
    return f"{problem}. Indent with spaces, not with tabs." if r"'\t'" in problem else problem

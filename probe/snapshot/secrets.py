# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Values as JSON, without secrets: those with names of secrets, and texts that look like tokens or carry a password."""

from __future__ import annotations

import functools
import os
import re
from typing import Any

from probe.pytree import MAX_ITEMS, is_mapping, items_of

CUT = "***"
#: short names of secrets are words of their own: "passes" and "author" are no secrets
_WORD = (
    r"(?<![A-Za-z])(?:PWD|PASS|AUTH|CREDS?|COOKIES?|SAS|JWT|(?:AMZ|GOOG)[-_]SIGNATURE)(?![A-Za-z])"
)
#: names of secrets that may be numbers, and of those that are texts: "tokenizer" is no secret, nor are 512 tokens
_STRICT = rf"SECRET|PASSW|PASSPHRASE|CREDENTIAL|{_WORD}"
_NAME = re.compile(rf"{_STRICT}|KEY|TOKEN(?!IZER)", re.IGNORECASE)
#: names whose values are secrets if they look harmless too
_ALWAYS = re.compile(rf"{_STRICT}|(?:KEY|TOKEN)[\s\"'=:\0]*$", re.IGNORECASE)
_HARMLESS = re.compile(r"[+-]?\d[\d.e+-]*", re.IGNORECASE)
_SWITCH = re.compile(r"true|false|none|yes|no|on|off", re.IGNORECASE)
_IN_TEXTS = re.compile(
    r"(?<=://)[^/\s@:]*:[^/\s]*@"  # user:password@ in an address
    r"|(?:(?<=https://)|(?<=http://))[^/\s@:]+@"  # token@ in an address
    r"|(?i:(?<=bearer )|(?<=basic ))\S{6,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*"
    # the beginnings that well-known services give to their tokens
    r"|\b(?:gh[a-z]_|github_pat_|glpat-|sk-|sk_|pk_|rk_|hf_|npm_|pypi-|dckr_pat_|xox[a-z]-|AKIA|ASIA|AIza|ya29\.|SG\.|eyJ|dop_v1_|key-)"
    r"[\w.=/+-]{10,}"
    r"|\b(?=[a-z0-9]*\d)(?=[a-z0-9]*[a-z])[a-z0-9]{32,}\b|\b(?=[A-F0-9]*[A-F])[A-F0-9]{32,}\b"
    r"|\b(?=\w*[a-z])(?=\w*[A-Z])(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}\b"
    r"|(?<![\w/.~+-])(?=[A-Za-z0-9+/]*[a-z])(?=[a-z0-9+/]*[A-Z])(?=[A-Za-z+/]*\d)[A-Za-z0-9+/]{40}=*(?![\w/.+])"
)
#: name=value and name: value inside of a text, as in an option or the query of an address
_NAMED = re.compile(
    rf"""((?<![\w.-])[\w.-]{{0,60}}(?:{_NAME.pattern}|(?<=[?&])sig(?:nature)?)[\w.-]{{0,60}}\s{{0,3}}["']?[=:]\s*["']?)([^\s&"',;\0]+)""",
    re.IGNORECASE,
)
#: an option and its value, in words that are joined by null
_OPTION = re.compile(
    rf"((?:^|\0)-[^\0=]*(?:{_NAME.pattern})[^\0=]*[=\0])((?!--)[^\0]+)", re.IGNORECASE
)
_MOST_DEPTH = 20
_NUMBERS = (bool, int, float)


@functools.lru_cache(4096)
def _is_strict(name: str) -> bool:
    return re.search(_STRICT, name, re.IGNORECASE) is not None


def _cut(match: re.Match[str]) -> str:
    """Return a name with its value cut, unless the value is harmless under this name."""
    name = match[1]
    value = match[2]
    is_switch = _SWITCH.fullmatch(value)
    if is_switch or (
        not _ALWAYS.search(name) and (_HARMLESS.fullmatch(value) or value.startswith("-"))
    ):
        return match[0]
    return f"{name}{CUT}"


def is_secret(name: str) -> bool:
    """Return whether a name is that of a secret.

    >>> is_secret("HF_TOKEN"), is_secret("tokenizer")
    (True, False)
    """
    return _NAME.search(name) is not None


def without_secrets(text: str) -> str:
    """Return a text in which secrets are cut.

    >>> without_secrets("http://me:1234@host/x"), without_secrets("--lr=0.1 --api-key=abc")
    ('http://***host/x', '--lr=0.1 --api-key=***')
    """
    return _NAMED.sub(_cut, _IN_TEXTS.sub(CUT, text))


def words_without_secrets(words: list[str]) -> list[str]:
    """Return the words of a command line; the word after an option that names a secret is cut.

    >>> words_without_secrets(["train.py", "--token", "abc", "--lr", "1"])
    ['train.py', '--token', '***', '--lr', '1']
    """
    return _OPTION.sub(_cut, "\0".join(map(without_secrets, words))).split("\0")


def to_json(value: Any, name: str = "", depth: int = 0) -> Any:
    """Return a value as JSON without secrets. An object of an unknown kind becomes its text.

    >>> to_json({"lr": 0.1, "password": 7, "max_tokens": 512, "betas": (0.9, 0.99)})
    {'lr': 0.1, 'password': '***', 'max_tokens': 512, 'betas': [0.9, 0.99]}
    """
    if value is True or value is False:
        return value
    if type(value) in _NUMBERS:
        return CUT if _is_strict(name) else value
    if type(value).__module__ == "numpy" and getattr(value, "size", 0) == 1:
        value = value.item()
    for kind in _NUMBERS:
        if isinstance(value, kind):
            return CUT if _is_strict(name) else kind(value)
    if value is None or isinstance(value, str) or depth > _MOST_DEPTH:
        return value if value is None else CUT if is_secret(name) else without_secrets(str(value))
    value = vars(value) if type(value).__name__ == "Namespace" else value
    items = items_of(sorted(value, key=str) if isinstance(value, (set, frozenset)) else value)
    if items is not None:
        made = [(key, to_json(item, f"{name} {key}", depth + 1)) for key, item in items[:MAX_ITEMS]]
        return dict(made) if is_mapping(value) else [item for _, item in made]
    text = (
        os.fspath(value)
        if isinstance(value, os.PathLike)
        else getattr(value, "__qualname__", None) or str(value)
    )
    return to_json(re.sub(r" at 0x[0-9a-f]+", "", str(text)), name)

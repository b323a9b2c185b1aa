# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The words of PyTorch and MindSpore for the same thing, as their public documents have them: ``words.json``.

Both sides are brought to one word: that of MindSpore where it has one. A word that no table has stands for itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PYTORCH = "pytorch"
MINDSPORE = "mindspore"
MINDTORCH = "mindtorch"  # torch on MindSpore: the names of PyTorch, the dtypes of MindSpore
_FILE = Path(__file__).parent / "words.json"
_TABLES: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
#: class of torch.nn, or of mindspore.mint.nn -> class of mindspore.nn
_CLASSES: dict[str, str] = _TABLES["classes"]
#: parameter of torch -> parameters of mindspore.nn, tried where the other side has no parameter of that name
_PARAMETERS: dict[str, list[str]] = _TABLES["parameters"]
#: other word of both frameworks -> one word for a call: functions, methods and Primitives, in small letters
_CALL_WORDS: dict[str, str] = {
    other: word for word, others in _TABLES["calls"].items() for other in others.split()
}
#: framework -> words that mean something else in it
_OWN_CALLS: dict[str, dict[str, str]] = _TABLES["own_calls"]
_DTYPES: dict[str, str] = _TABLES["dtypes"]
_KINDS: dict[str, str] = _TABLES["kinds"]


def are_two(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Return whether two headers are of two frameworks."""
    frameworks = {a.get("framework"), b.get("framework")}
    return len(frameworks) == 2 and frameworks <= {PYTORCH, MINDSPORE, MINDTORCH}


def class_word(name: str) -> str:
    """Return one word for a class that both frameworks have.

    >>> class_word("Linear"), class_word("Dense"), class_word("Block")
    ('Dense', 'Dense', 'Block')
    """
    return _CLASSES.get(name, name)


def call_word(word: str, framework: str) -> str:
    """Return one word for a call that both frameworks have.

    >>> call_word("linear", "pytorch"), call_word("layernorm", "mindspore"), call_word("iadd", "pytorch")
    ('dense', 'layer_norm', 'add')
    """
    own = _OWN_CALLS.get(framework, {}).get(word)
    return own or _CALL_WORDS.get(word, word)


def parameter_word(name: str, others: set[str]) -> str:
    """Return the name that a parameter of torch has among those of the same Cell on the other side.

    >>> parameter_word("weight", {"gamma", "beta"}), parameter_word("weight", {"weight", "bias"})
    ('gamma', 'weight')
    """
    if name in others:
        return name
    for word in _PARAMETERS.get(name, ()):
        if word in others:
            return word
    return name


def dtype_word(dtype: Any) -> Any:
    """Return a dtype of torch as MindSpore spells it; anything else as it is.

    >>> dtype_word("torch.bfloat16"), dtype_word("torch.uint8"), dtype_word("torch.float"), dtype_word("Float32")
    ('BFloat16', 'UInt8', 'Float32', 'Float32')
    """
    if type(dtype) is not str or not dtype.startswith("torch."):
        return dtype
    if dtype in _DTYPES:
        return _DTYPES[dtype]
    word = dtype.removeprefix("torch.")
    kind = word.rstrip("0123456789")
    if kind not in _KINDS:
        return dtype
    return _KINDS[kind] + word.removeprefix(kind)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The grammar: how a file is changed. A generator of random numbers chooses, so that each change can be repeated."""

from __future__ import annotations

import json
import os
import random
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from probe.series.file import MARK
from probe.store.journal import FRAME, MAGIC

#: texts of JSON that stand in place of a value
VALUES = [
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1.5",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "-1e-400",
    "9" * 30,
    "9" * 400,
    "-" + "9" * 400,
    "9" * 5000,
    '""',
    '"x"',
    '"nan"',
    '"\\u202e\\u001b[2J"',
    '"=cmd()"',
    '"../../../etc/passwd"',
    '"\\ud800"',
    '"a\\u0000b"',
    '"<script>"',
    '"Functional.relu.0.forward"',
    '"mindspore.Tensor"',
    '"BFloat16"',
    "[]",
    "[null]",
    "[[1]]",
    '["x", 3000000000]',
    "[-1]",
    "[2.5]",
    "[true]",
    "[1000000000000000000, 1000000000000000000]",
    "{}",
    '{"type": []}',
    '{"type": "mindspore.Tensor"}',
    '{"type": "slice", "value": [1, 2]}',
    '{"type": "int", "value": {}}',
    '{"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2], "Max": [], "Min": {}, "Mean": "a", "Norm": null}',
    f'{{"type": "int", "value": {"9" * 400}}}',
    "[" * 3000 + "]" * 3000,
    '{"a":' * 3000 + "1" + "}" * 3000,
]
#: names of keys
KEYS = [
    "type",
    "shape",
    "dtype",
    "Max",
    "Norm",
    "data",
    "md5",
    "",
    "\u202e",
    "a\x00",
    "Functional.x.0.forward",
    "Cell",
    "Cell.a.B.forward.0",
    "Parameter.x",
    "..",
    "output",
    "input_args",
    "x" * 5000,
]
#: parts of the header of an array -> what stands in their places
HEADERS = [
    (
        "(?<='descr': )'[^']*'",
        [
            "'|S0'",
            "'|O'",
            "'q9'",
            "3",
            "[('a','<f4')]",
            "'<E2'",
            "'<U1000000000'",
            "'>f8'",
            "'<V2'",
        ],
    ),
    (
        "(?<='shape': )\\([^)]*\\)",
        [
            "(-1,)",
            "(10**12,)",
            "(1000000000000,)",
            "(True,)",
            "3",
            "('a',)",
            "(" + "-" * 9000 + "1,)",
            "()",
            "(0,)",
            "(" + "1," * 100 + ")",
            "(" + "9" * 400 + ",)",
        ],
    ),
    ("False", ["True", "3", "None"]),
    ("'shape'", ["'shapes'", "3"]),
]
CELLS = [
    "",
    "x",
    "-1",
    "1e400",
    "9" * 400,
    "9" * 5000,
    "nan",
    "(-1)",
    "(a)",
    "input",
    "\x00",
    '"',
    "=1+1",
    "\u202e",
    "()",
]

#: texts, numbers and words of JSON
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null')

#: the numbers of a record that commands compare
NUMBERS = ("Max", "Min", "Mean", "Norm")

Change = Callable[[random.Random, bytes], bytes]


def json_change(chosen: random.Random, content: bytes) -> bytes:
    """Change one place of a document, or of one line of it: on the way from its root, or any one alike."""
    text = content.decode("utf-8", "replace")
    if chosen.random() < 0.3:
        return _token_change(chosen, text).encode("utf-8", "surrogatepass")
    try:
        document = json.loads(text)
    except ValueError:
        lines = text.splitlines()
        place = chosen.randrange(len(lines)) if lines else 0
        if lines:
            line = json_change(chosen, lines[place].encode()) if lines[place] else b"{"
            lines[place] = line.decode("utf-8", "surrogatepass")
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    return changed(chosen, document).encode("utf-8", "surrogatepass")


def _token_change(chosen: random.Random, text: str) -> str:
    """Return a text in which one value or key is another."""
    found = list(_TOKENS.finditer(text))
    if not found:
        return text
    token = chosen.choice(found)
    is_key = text[token.end() :].lstrip().startswith(":")
    is_text = not is_key and token[0].startswith('"') and chosen.random() < 0.5
    made = json.dumps(chosen.choice(KEYS)) if is_key or is_text else chosen.choice(VALUES[:-2])
    return text[: token.start()] + made + text[token.end() :]


def changed(chosen: random.Random, document: Any) -> str:
    """Return the text of a document with one place changed, or with many: then mostly fields deep inside."""
    if chosen.random() < 0.03:
        return chosen.choice(VALUES)
    raw: dict[str, str] = {}
    count = chosen.choice((1, 1, 2, 6, 20))
    for number in range(count):
        owner, key = _place(chosen, document, 0.12 if count < 3 else 0.02)
        mark = f"@raw{number}@"
        raw[mark] = chosen.choice(VALUES if count < 3 else VALUES[:-2])
        if key == "value":
            raw[mark] = chosen.choice(VALUES[:15])  # a plain number stays one
        if (
            isinstance(owner, dict) and chosen.random() < 0.15
        ):  # a name of another item there: circles
            raw[mark] = json.dumps(chosen.choice(list(owner)))
        kind = chosen.randrange(10 if count < 3 else 40)
        if owner is None:
            document = mark
        elif kind == 0:
            del owner[key]
        elif kind == 1 and isinstance(owner, dict):
            owner[chosen.choice(KEYS)] = owner.pop(key)
        elif kind == 2 and isinstance(owner, dict):
            owner[chosen.choice(KEYS)] = mark
        elif kind == 3 and isinstance(owner, list):
            owner.append(mark)
        else:
            owner[key] = mark
    text = json.dumps(document, indent=chosen.choice((None, 1)))
    for mark, value in raw.items():
        text = text.replace(f'"{mark}"', value)
    return text


def _place(chosen: random.Random, document: Any, ends: float) -> tuple[Any, Any]:
    """Return a container and a key in it. The way down ends at each depth in this part of all cases."""
    owner, key, value = None, None, document
    while isinstance(value, (dict, list)) and value and (owner is None or chosen.random() > ends):
        key = (
            chosen.choice(list(value)) if isinstance(value, dict) else chosen.randrange(len(value))
        )
        items = value if type(value) is list else []
        plain = [at for at, item in enumerate(items) if type(item) is dict and "value" in item]
        if plain and chosen.random() < 0.7:
            key = chosen.choice(plain)
        inner = [
            it
            for it in ("data", "parameters")
            if owner is None and type(value) is dict and value.get(it)
        ]
        if inner and chosen.random() < 0.7:
            key = inner[0]
        owner, value = value, value[key]
        if key == "data" and isinstance(value, dict) and value and chosen.random() < 0.9:
            continue
    return owner, key


def npy_change(chosen: random.Random, content: bytes) -> bytes:
    """Change the header of an array."""
    size = int.from_bytes(content[8:10], "little")
    text = content[10 : 10 + size].decode("latin1")
    pattern, values = chosen.choice(HEADERS)
    text = re.sub(pattern, lambda _: chosen.choice(values), text, count=1)
    if chosen.random() < 0.1:
        text = text[: chosen.randrange(1, len(text))]
    head = text.encode("latin1")
    return content[:8] + struct.pack("<H", min(len(head), 65535)) + head + content[10 + size :]


def csv_change(chosen: random.Random, content: bytes) -> bytes:
    """Change a cell of a table."""
    lines = content.decode("utf-8", "replace").splitlines()
    place = chosen.randrange(len(lines)) if lines else 0
    if lines:
        cells = lines[place].split(",")
        cells[chosen.randrange(len(cells))] = chosen.choice(CELLS)
        lines[place] = ",".join(cells if chosen.random() > 0.1 else cells[:-2])
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def journal_change(chosen: random.Random, content: bytes) -> bytes:
    """Change a record; its sum is right."""
    found, place = [], len(MAGIC)
    while place < len(content):
        length, _ = FRAME.unpack_from(content, place)
        found.append(content[place + FRAME.size : place + FRAME.size + length])
        place += FRAME.size + length
    at = chosen.randrange(len(found))
    found[at] = json_change(chosen, found[at])
    return MAGIC + b"".join(FRAME.pack(len(it), zlib.crc32(it)) + it for it in found)


def series_change(chosen: random.Random, content: bytes) -> bytes:
    """Change the columns, or a number."""
    line, _, rows = content.partition(b"\n")
    if chosen.random() < 0.5:
        document = json.loads(line)
        document["names"] = chosen.choice(
            [[], 3, ["step"], [1, 2], document["names"] * 2, [[]], "step", None, [""]]
        )
        text = json.dumps(document).encode()
        return (text if text.startswith(MARK) else MARK + text) + b"\n" + rows
    numbers = bytearray(rows)
    at = 4 * chosen.randrange(max(len(numbers) // 4, 1))
    numbers[at : at + 4] = struct.pack(
        "<f", chosen.choice([float("nan"), float("inf"), -1.0, 3e38, 1e-40])
    )
    return line + b"\n" + bytes(numbers)


def safetensors_change(chosen: random.Random, content: bytes) -> bytes:
    """Change the header."""
    size = int.from_bytes(content[:8], "little")
    head = json_change(chosen, content[8 : 8 + size])
    return (
        struct.pack("<Q", chosen.choice([len(head), len(head), 1 << 60]))
        + head
        + content[8 + size :]
    )


def bytes_change(chosen: random.Random, content: bytes) -> bytes:
    """Change bytes without regard to the format."""
    size = len(content)
    at = chosen.randrange(size) if size else 0
    flipped = bytearray(content)
    for _ in range(3 if size else 0):
        flipped[chosen.randrange(size)] ^= 1 << chosen.randrange(8)
    return chosen.choice(
        [
            content[:at],
            content + content,
            content[:at] + content[at // 2 :],
            b"",
            content.decode("latin1").encode("utf-16"),
            b"\xef\xbb\xbf" + content,
            content[:at] + b"\x00\xff\xfe" + content[at + 3 :],
            chosen.randbytes(200),
            bytes(flipped),
        ]
    )


GRAMMARS: dict[str, Change] = {
    ".json": json_change,
    ".jsonl": json_change,
    ".npy": npy_change,
    ".csv": csv_change,
    ".journal": journal_change,
    ".bin": series_change,
    ".safetensors": safetensors_change,
}
#: what stands in place of a file
PLACES: dict[str, Callable[[Path], Any]] = {
    "fifo": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "dangling": lambda path: path.symlink_to("nowhere"),
    "loop": lambda path: path.symlink_to(path.name),
    "folder": lambda path: path.mkdir(),
    "missing": lambda path: None,
}


def change(chosen: random.Random, path: Path, only_places: bool = False) -> str:
    """Change a file; return the kind of the change."""
    share = 0.0 if only_places else chosen.random()
    if share < 0.12:
        kind = chosen.choice(list(PLACES))
        path.unlink()
        PLACES[kind](path)
        return kind
    grammar = GRAMMARS.get(path.suffix)
    content = path.read_bytes()
    if grammar is None or share < 0.35 or not content:
        path.write_bytes(bytes_change(chosen, content))
        return "bytes"
    path.write_bytes(grammar(chosen, content))
    return grammar.__name__

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A working folder of its own for each run: a copy of the user's, so that no file of the training is overwritten."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import foreign
from probe.reading.dumps.text import size
from probe.store.file_io import atomic_write
from probe.store.file_names import RUN, RUN_LINES, STACK

#: a larger folder is not copied
LARGEST = 1 << 30
#: space that stays free
_RESERVED = 256 << 20
_LEFT_OUT = frozenset((".git", "__pycache__", "node_modules"))
#: the state of a file: its time of change, and its size
State = tuple[int, int]


def copied(source: str, target: str, kept: str) -> str:
    """Copy a working folder, and return the copy. Beside it are links to the folders beside the one of the user.

    Args:
        source: the folder.
        target: the copy, which replaces an older one. Its folder holds nothing else.
        kept: the folder of the search, which is left out.

    Raises:
        UsageError: when the folder is too large, a file cannot be read, or the disk has no space for it.
    """
    needed = sum(path.stat().st_size for path in _files(source, kept) if path.exists())
    if needed > LARGEST:
        raise UsageError(say("find.too_large", folder=source, size=size(needed)))
    shutil.rmtree(os.path.dirname(target), ignore_errors=True)
    os.makedirs(target)
    free = shutil.disk_usage(target).free
    if needed + _RESERVED > free:
        raise UsageError(say("find.no_space", size=size(needed), free=size(free)))
    try:
        shutil.copytree(source, target, symlinks=True, ignore=_left_out(kept), dirs_exist_ok=True)
    except shutil.Error as error:
        path, _, why = error.args[0][0]
        raise UsageError(say("find.not_copied", path=path, reason=foreign(str(why)))) from None
    _link_siblings(source, target)
    return target


def _link_siblings(source: str, target: str) -> None:
    """Let a path that begins with ``..`` lead to the same files from a copy as from the folder."""
    above = os.path.dirname(source)
    with contextlib.suppress(OSError):  # such a folder may not be readable
        for name in os.listdir(above):
            if name != os.path.basename(target):
                os.symlink(os.path.join(above, name), os.path.join(os.path.dirname(target), name))


def states(folder: str, kept: str) -> dict[str, State]:
    """Return the state of each file in a folder, without the folder of the search."""
    found = {}
    for path in _files(folder, kept):
        if path.exists():
            state = path.stat()
            found[str(path)] = (state.st_mtime_ns, state.st_size)
    return found


def name_originals(dump: str, copy: str, source: str) -> None:
    """Let the stacks and the facts of a run name the files of the user, for which those in the copy stood.

    Args:
        dump: the folder with the dump of the run.
        copy: the working folder of the run.
        source: the folder of the user.
    """
    for path in Path(dump).rglob("*"):
        if path.name in (STACK, RUN, RUN_LINES):
            text = path.read_bytes()
            named = text
            for end, is_ascii in itertools.product((os.sep, '"'), (True, False)):
                named = named.replace(
                    _in_json(copy, end, is_ascii), _in_json(source, end, is_ascii)
                )
            if named != text:
                with atomic_write(str(path), "wb") as file:
                    file.write(named)


def _in_json(folder: str, end: str, is_ascii: bool) -> bytes:
    """Return a folder as files in JSON have it, with the character behind it."""
    text = json.dumps(folder, ensure_ascii=is_ascii)[1:-1]
    return os.fsencode(text) + end.encode()


def _left_out(kept: str) -> Callable[[str, list[str]], Iterable[str]]:
    """Return what tells ``copytree`` the names in a folder that it leaves out."""

    def names(folder: str, found: list[str]) -> Iterable[str]:
        return [name for name in found if _is_left_out(os.path.join(folder, name), kept)]

    return names


def _is_left_out(path: str, kept: str) -> bool:
    is_environment = os.path.exists(os.path.join(path, "pyvenv.cfg"))
    is_pipe = not (os.path.isdir(path) or os.path.isfile(path) or os.path.islink(path))
    return (
        os.path.basename(path) in _LEFT_OUT
        or os.path.abspath(path) == os.path.abspath(kept)
        or is_environment
        or is_pipe
    )


def _files(folder: str, kept: str) -> Iterator[Path]:
    """Yield the files that are copied."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_left_out(os.path.join(place, name), kept)]
        for name in names:
            path = os.path.join(place, name)
            if not _is_left_out(path, kept):
                yield Path(path)

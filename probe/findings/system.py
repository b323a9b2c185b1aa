# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reasons of the operating system, and words of other programs, as sentences."""

from __future__ import annotations

import errno
import os

from probe.findings.sentence import Sentence, said_of, say

#: number of an error -> its sentence, whose English form is that of Linux
_REASONS = {
    errno.EPERM: "system.EPERM",
    errno.ENOENT: "system.ENOENT",
    errno.EIO: "system.EIO",
    errno.ENXIO: "system.ENXIO",
    errno.EBADF: "system.EBADF",
    errno.EAGAIN: "system.EAGAIN",
    errno.ENOMEM: "system.ENOMEM",
    errno.EACCES: "system.EACCES",
    errno.EBUSY: "system.EBUSY",
    errno.EEXIST: "system.EEXIST",
    errno.EXDEV: "system.EXDEV",
    errno.ENODEV: "system.ENODEV",
    errno.ENOTDIR: "system.ENOTDIR",
    errno.EISDIR: "system.EISDIR",
    errno.EINVAL: "system.EINVAL",
    errno.ENFILE: "system.ENFILE",
    errno.EMFILE: "system.EMFILE",
    errno.ETXTBSY: "system.ETXTBSY",
    errno.EFBIG: "system.EFBIG",
    errno.ENOSPC: "system.ENOSPC",
    errno.EROFS: "system.EROFS",
    errno.EMLINK: "system.EMLINK",
    errno.EPIPE: "system.EPIPE",
    errno.ENAMETOOLONG: "system.ENAMETOOLONG",
    errno.ENOTEMPTY: "system.ENOTEMPTY",
    errno.ELOOP: "system.ELOOP",
    errno.EDQUOT: "system.EDQUOT",
    errno.ESTALE: "system.ESTALE",
    errno.ETIMEDOUT: "system.ETIMEDOUT",
    errno.ECONNREFUSED: "system.ECONNREFUSED",
    errno.ENOTSUP: "system.ENOTSUP",
}
#: letters of the words of another program
_LONGEST = 300


def reason_of(error: Exception) -> Sentence:
    """Return why the operating system, or something else that probe called, has refused.

    An error whose words are a sentence keeps it. Words that have no row are told as they are.

    >>> reason_of(FileNotFoundError(2, "No such file or directory")).text("zh"), str(reason_of(ValueError("no")))
    ('没有该文件或目录', 'no')
    """
    said = said_of(error)
    if isinstance(error, OSError):
        said = error.strerror or str(error)
        number = error.errno
        if number in _REASONS and said == os.strerror(number):
            return say(_REASONS[number])
    if isinstance(said, Sentence):
        return said
    return foreign(" ".join(said.split())[:_LONGEST] or type(error).__name__)


def foreign(words: str) -> Sentence:
    """Return words of another program, such as Python's, as a sentence; in Chinese they stand in backticks.

    >>> foreign("nothing to repeat").text("zh")
    '`nothing to repeat`'
    """
    return say("system.other", reason=words)

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tells by the name of a call whether it draws random numbers, or communicates with other ranks."""

from __future__ import annotations

import re

from probe.naming import COLLECTIVE
from probe.reading.dumps.entry_name import EntryName

_RANDOM = re.compile(
    r"^(alpha_)?(feature_)?dropout\d?d?(_ext)?$|^(standard_)?(rand|normal|uniform|bernoulli|multinomial|poisson|gamma|"
    r"laplace|shuffle|exponential|cauchy|geometric|gumbel|random)|^(standard)(normal|laplace)$",
    re.IGNORECASE,
)
#: Primitives that communicate. Others begin like them and do not: ReduceMean, GatherD, BroadcastTo
_COLLECTIVE = re.compile(
    r"(?:inner_?comm_?|dist_?comm_?)?(?:all_?reduce|all_?gather(?:v|_into_tensor)?|reduce_?scatter(?:v|_tensor)?|"
    r"broadcast|all_?to_?all\w*|reduce|send|i_?send|recv|receive|i_?recv|barrier|batch_?isend_?irecv|"
    r"collective_?gather|collective_?scatter|neighbor_?exchange\w*|_?mirror\w*)",
    re.IGNORECASE,
)


def is_random(parts: EntryName) -> bool:
    """Return whether a call draws random numbers.

    >>> from probe.reading.dumps.entry_name import parse
    >>> [is_random(parse(f"{name}.0.forward")) for name in ("Functional.dropout", "Mint.randn", "Tensor.normalize")]
    [True, True, False]
    """
    name = parts.api.lower()
    return bool(_RANDOM.match(name)) and not name.startswith("normalize")


def is_collective(parts: EntryName) -> bool:
    """Return whether a call communicates with other ranks.

    >>> from probe.reading.dumps.entry_name import parse
    >>> [is_collective(parse(f"Primitive.f.{api}.0.forward")) for api in ("AllReduce", "ReduceMean", "Gather")]
    [True, False, False]
    """
    if parts.prefix in COLLECTIVE:
        return True
    return parts.prefix == "Primitive" and bool(_COLLECTIVE.fullmatch(parts.api))

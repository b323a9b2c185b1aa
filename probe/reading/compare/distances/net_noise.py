# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How far a net carries roundings, from one run whose parameters or batch were moved by one rounding.

One run is one sample: a tensor may have been moved by nearly nothing, by chance. So a tensor has at least the median
of its neighbours in order, and of the same place in the other calls of its API.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

#: how many times its noise a tensor may differ
NET_FACTOR = 8.0
#: so many neighbours on each side
_NEAR = 8
#: half of the distance of two numbers of a dtype, relative
_UNITS = {"float64": 2.0**-53, "double": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


class Sample(NamedTuple):
    """One tensor in the golden run and in the one that was moved."""

    name: str
    group: Hashable  # equal for one place in all calls of an API
    dtype: str
    rel_l2: float


class NetNoise(dict[str, float]):
    """Tensor -> how far a rounding moves it, relative. Tensors without fractions are not in it."""


def unit(dtype: object) -> float:
    """Return the rounding of a dtype; 0.0 where it has no fractions.

    >>> unit("Float32") == 2.0**-24, unit("torch.bfloat16") == 2.0**-8, unit("Int64")
    (True, True, 0.0)
    """
    return _UNITS.get(str(dtype).rpartition(".")[2].lower(), 0.0)


def net_noise(samples: Sequence[Sample]) -> NetNoise:
    """Return the noise of each tensor; the samples are in the order of execution.

    >>> row = [Sample(str(place), "sum", "Float32", 1e-6 * (place != 5)) for place in range(9)]
    >>> net_noise(row)["5"]
    1e-06
    """
    known = [item for item in samples if unit(item.dtype)]
    groups: dict[Hashable, list[float]] = {}
    for item in known:
        groups.setdefault(item.group, []).append(item.rel_l2)
    typical = {group: median(found) for group, found in groups.items()}
    sizes = [item.rel_l2 for item in known]
    return NetNoise(
        {
            item.name: max(
                item.rel_l2, typical[item.group], unit(item.dtype), median(sizes[max(at - _NEAR, 0) : at + _NEAR + 1])
            )
            for at, item in enumerate(known)
        }
    )


def is_perturbed(header: Mapping[str, Any]) -> bool:
    """Return whether the header of a dump says that ``probe run --perturb`` made it."""
    run = header.get("run")
    return isinstance(run, dict) and bool(run.get("perturbed"))

# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How far one rounding moves each tensor of a net, by a run that was moved."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from statistics import median
from typing import NamedTuple

from probe.reading.compare.distances.tolerance import HALF_STEPS, of_dtype
from probe.reading.dumps.values import grouped

#: neighbours on each side
_NEAR = 8


class _Moved(NamedTuple):
    name: str
    group: Hashable
    size: float
    rounding: float  # of its dtype; 0.0 for one without fractions


class NetNoise(dict[str, float]):
    """Tensor -> how far a rounding moves it, relative. Tensors without fractions are not in it.

    One run is one sample: a tensor may have been moved by nearly nothing, by chance. So it has at least the median of
    its neighbours, that of the same place in the other calls of its API, and one rounding of its dtype.
    """

    @classmethod
    def of(cls, samples: Iterable[tuple[str, Hashable, object, float]]) -> NetNoise:
        """Return it from (tensor, place in the calls of its API, dtype, rel_l2) in the order of execution."""
        known: list[_Moved] = []
        for name, group, dtype, size in samples:
            tolerance = of_dtype(dtype)
            rounding = HALF_STEPS.get(tolerance, 0.0)
            if rounding:
                known.append(_Moved(name, group, min(size, 1.0), rounding))
        groups = grouped((moved.group, moved.size) for moved in known)
        typical = {group: median(sizes) for group, sizes in groups.items()}
        sizes = [moved.size for moved in known]
        noise = cls()
        for number, moved in enumerate(known):
            first = max(number - _NEAR, 0)
            last = number + _NEAR
            around = median(sizes[first : last + 1])
            alike = typical[moved.group]
            noise[moved.name] = max(around, alike, moved.size, moved.rounding)
        return noise

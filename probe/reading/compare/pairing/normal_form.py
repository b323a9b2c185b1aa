# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The form in which two dumps are compared: one spelling of dtypes, places and updates. Opened dumps stay as they are.

An entry that needs another form is a new one. Its places on disk are kept, so that "input 0" is input 0 on disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from probe.findings.sentence import NOTHING, Sentence
from probe.reading.compare.frameworks.words import PYTORCH, are_two
from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.argument_forms import fit_arguments
from probe.reading.compare.pairing.levels import leave_out_unrecorded
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.compare.pairing.operands import order_operands
from probe.reading.compare.pairing.precedence import comes_first
from probe.reading.compare.pairing.reductions import pair_reductions
from probe.reading.compare.pairing.rewiring import Rewiring
from probe.reading.compare.pairing.torch_arguments import fit, spell_dtypes
from probe.reading.compare.pairing.updates import fit_updates
from probe.reading.dumps.dump import Dump


class NormalPair(NamedTuple):
    """Two dumps in one form, and their pairs."""

    a: NormalDump  # A (golden)
    b: NormalDump  # B
    alignment: Alignment
    levels: Sentence  # that the levels record other calls; no sentence if they do not
    updates: frozenset[int]  # the places in A of updates of optimizers that have a partner
    is_foreign: bool  # whether one side is of PyTorch and the other of MindSpore


def normalised(a: Dump, b: Dump, mapping: Mapping[str, str], by_lines: bool) -> NormalPair:
    """Return two dumps in one form, and their pairs; for ``mapping`` and ``by_lines`` see ``Alignment``.

    Which of the dumps is A tells nothing of the pairs: they are looked for from the same side in both orders. A map of
    the user renames what stands in A, so it keeps its order.
    """
    normal_a = NormalDump(a)
    normal_b = NormalDump(b)
    levels = leave_out_unrecorded(normal_a, normal_b)
    if mapping or not comes_first(normal_b, normal_a):
        return _paired(normal_a, normal_b, mapping, by_lines)._replace(levels=levels)
    turned = _paired(normal_b, normal_a, mapping, by_lines)
    alignment = turned.alignment
    updates = frozenset(alignment.b_of[place] for place in turned.updates)
    alignment.turn()
    return turned._replace(a=normal_a, b=normal_b, levels=levels, updates=updates)


def _paired(a: NormalDump, b: NormalDump, mapping: Mapping[str, str], by_lines: bool) -> NormalPair:
    """Return two dumps in one form, and their pairs, which are looked for from the side of A."""
    is_foreign = are_two(a.header, b.header)
    if is_foreign:
        spell_dtypes(a if a.header["framework"] == PYTORCH else b)
    alignment = Alignment(a, b, mapping or None, by_lines=by_lines)
    if is_foreign:
        fit(alignment, a, b)
    else:
        pair_reductions(alignment, a, b)
        Rewiring(alignment).run()
        fit_arguments(alignment, a, b)
    order_operands(alignment, b, a)
    updates = frozenset(fit_updates(alignment, a, b))
    return NormalPair(a, b, alignment, NOTHING, updates, is_foreign)

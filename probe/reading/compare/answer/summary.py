# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A comparison in at most 25 lines."""

from __future__ import annotations

from probe.reading.compare.answer.result import ComparisonResult
from probe.reading.compare.origins.origin import Origin
from probe.reading.dumps import text

_ORIGINS, _CELLS, _NOTES, _LONG = 5, 5, 3, 230


def one_line(comparison: ComparisonResult) -> str:
    """Return a comparison in one short line, as pytest shows it."""
    if comparison.agrees:
        return "agrees"
    if not comparison.is_comparable:
        reason = comparison.errors[0] if comparison.errors else "fewer than half of the calls have a partner"
        return text.shorten(text.safe(f"cannot be compared: {reason}"), _LONG)
    first = comparison.first
    found = "differs" if first is None else f"differs; first: {first.kind} at {_where(first)}: {first.sentence}"
    return text.shorten(text.safe(found), _LONG)


def summary_text(comparison: ComparisonResult) -> str:
    """Return the text of a comparison: its dumps, its pairs, the origins, and the Cells that differ."""
    lines = [f"A: {comparison.paths[0]}", f"B: {comparison.paths[1]}", *_matched(comparison)]
    lines += [f"the runs differ: {line}" for unit in comparison.units[:1] for line in unit.header[:_NOTES]]
    notes = dict.fromkeys(
        note for unit in comparison.units for note in (*unit.notes, *([unit.error] if unit.error else []))
    )
    lines += [f"note: {note}" for note in list(notes)[:_NOTES]]
    if comparison.agrees:
        lines += ["no difference beyond tolerance", *_harmless(comparison)]
    elif not comparison.is_comparable:
        lines.append(one_line(comparison))
    else:
        lines += [*_origins(comparison), *_also(comparison), *_cells(comparison)]
    return "\n".join(text.safe(line) for line in lines[:25])


def _matched(comparison: ComparisonResult) -> list[str]:
    pairs = comparison.pairs
    paired = sum(pairs.values())
    counts = [sum(unit.counts.only[side] for unit in comparison.units) for side in (0, 1)]
    how = ", ".join(f"{name} {count}" for name, count in sorted(pairs.items(), key=lambda item: -item[1]))
    lines = [
        f"{len(comparison.units)} dumps compared; {paired} calls paired ({how or 'none'}); "
        f"only in A: {counts[0]}, only in B: {counts[1]}"
    ]
    verdicts = comparison.verdicts
    verdicts.pop("argument", None)
    lines.append("tensors: " + (", ".join(f"{name} {count}" for name, count in verdicts.items()) or "none"))
    for side, names in zip("AB", comparison.alone):
        if names:
            lines.append(f"only in {side}, not compared: {'; '.join(names[:4])}{' ...' if len(names) > 4 else ''}")
    return lines


def _origins(comparison: ComparisonResult) -> list[str]:
    lines = []
    for place, origin in enumerate(comparison.origins[:_ORIGINS]):
        title = "first difference" if not place else "independent of it"
        lines.append(f"{title}: {_where(origin)}: {origin.kind}")
        lines.append(f"    {text.shorten(origin.sentence, 400)}")
        if origin.file:
            lines.append(f"    {origin.file}:{origin.line}: {origin.source}")
    more = len(comparison.origins) - _ORIGINS
    if more > 0:
        lines.append(f"and {more} more")
    if comparison.later:
        names = ", ".join(dict.fromkeys(origin.name for origin in comparison.later))
        lines.append(f"also suspicious, after it: {text.shorten(names, 200)}")
    return lines


def _where(origin: Origin) -> str:
    parts = ["" if origin.step is None else f"step {origin.step}"]
    if origin.rank is not None:
        ranks = [origin.rank, *origin.ranks]
        parts.append(
            f"rank {origin.rank}" if len(ranks) == 1 else f"{len(ranks)} ranks ({', '.join(map(str, ranks[:4]))})"
        )
    parts.append(origin.name + (f" in {origin.cell}" if origin.cell else ""))
    return ", ".join(filter(None, parts))


def _cells(comparison: ComparisonResult) -> list[str]:
    cells: dict[str, tuple[int, float]] = {}
    for unit in comparison.units:
        for name, (count, worst) in unit.counts.cells.items():
            before = cells.get(name, (0, 0.0))
            cells[name] = before[0] + count, max(before[1], worst)
    if not cells:
        return []
    shown = [[text.shorten(text.safe(name), 60), str(count), f"{worst:.2g}"] for name, (count, worst) in cells.items()]
    table = text.columns([["Cells that differ", "tensors", "greatest rel_l2"], *shown[:_CELLS]]).split("\n")
    return [*table, *([f"  ... and {len(shown) - _CELLS} more Cells"] if len(shown) > _CELLS else [])]


def _also(comparison: ComparisonResult) -> list[str]:
    """Return changes that alone change no value: they may be what was meant, beside the origin."""
    named = {origin.name for origin in comparison.origins}
    soft = [origin for origin in comparison.soft if origin.name not in named]
    return [f"also other, without a value that differs by it: {text.shorten(soft[0].sentence, 200)}"] if soft else []


def _harmless(comparison: ComparisonResult) -> list[str]:
    soft = comparison.soft
    lines = [f"harmless: {text.shorten(origin.sentence, 200)}" for origin in soft[:_NOTES]]
    return [*lines, *([f"harmless: {len(soft) - _NOTES} more"] if len(soft) > _NOTES else [])]

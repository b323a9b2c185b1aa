# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A search of programs that do not repeat their bits goes on with the settings of docs/repeatable.md."""

from __future__ import annotations

from dataclasses import replace

from probe.findings.sentence import say
from probe.reading.dumps.text import safe
from probe.search.random_calls import have_seeds, is_random_call
from probe.search.recordings import RECORD, RECORD_GOLDEN, golden_dump
from probe.search.repeating import REPEAT, chance
from probe.search.searching import Search
from probe.search.watching import SICK, watched_name

#: the seed of a user who has given none
SEED = 1234


def seeded(search: Search) -> Search:
    """Return the search that has more to say: the given one, or one with a seed for both programs.

    The second is done where a program differs from itself before it differs from the golden one, unless that is a
    random call though a seed is set. A golden dump has no seed any more, and alone a program is judged by rules,
    which need none.
    """
    wishes = search.wishes
    minutes = search.lab.left / 60
    if wishes.golden is None or wishes.seed is not None or minutes <= 0:
        return search
    if _outcome(search, REPEAT) != "varies" or not chance(search.lab) or _is_seeded(search):
        return search
    again = Search(replace(wishes, seed=SEED, minutes=minutes))
    if not wishes.as_json:
        print(safe(say("find.goes_on_seeded", seed=SEED).text(wishes.language)), flush=True)
    again.run()
    return again if _tells_more(again, search) else search


def _is_seeded(search: Search) -> bool:
    """Return whether a random call does not repeat its bits though both programs have set a seed."""
    lab = search.lab
    name = lab.ledger.fact(REPEAT, "name", "")
    return is_random_call(name) and have_seeds(lab.place(RECORD, "dump"), golden_dump(lab))


def _tells_more(again: Search, first: Search) -> bool:
    """Return whether a search with a seed names a cause, or finds that all was chance."""
    if chance(again.lab):
        return False
    has_symptom = _outcome(first, watched_name(first.lab)) in SICK
    found = _outcome(again, RECORD_GOLDEN)
    return found == "cause" or (found == "no_cause" and not has_symptom)


def _outcome(search: Search, name: str) -> str:
    """Return the outcome of an experiment; "" where it was not done."""
    result = search.lab.ledger.results.get(name)
    return "" if result is None else result.outcome

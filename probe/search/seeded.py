# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A search of a program that does not repeat its bits goes on with the settings of docs/repeatable.md."""

from __future__ import annotations

from dataclasses import replace

from probe.findings.sentence import say
from probe.reading.dumps.text import safe
from probe.search.recordings import RECORD, REPEAT
from probe.search.searching import Search

#: the seed of a user who has given none
SEED = 1234


def seeded(search: Search) -> Search:
    """Return the search that has more to say: the given one, or one with seeds where the program did not repeat itself.

    A program that has not its own bits with seeds either is judged as it is.
    """
    wishes = search.wishes
    minutes = search.lab.left / 60
    result = search.lab.ledger.results.get(REPEAT)
    if result is None or result.outcome != "varies" or wishes.seed is not None or minutes <= 0:
        return search
    again = Search(replace(wishes, seed=SEED, minutes=minutes))
    if not wishes.as_json:
        print(safe(say("find.goes_on_seeded", seed=SEED).text(wishes.language)), flush=True)
    again.run()
    repeated = again.lab.ledger.results.get(REPEAT)
    varies = repeated is not None and repeated.outcome == "varies"
    return search if varies or not again.lab.has_steps(RECORD) else again

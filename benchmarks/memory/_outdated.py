"""Which of two notes replaced the other: what the rules of interference find, and false alarms.

Each pair is given to a memory of its own. Where the later note replaced the earlier one, the
earlier should be marked; where both are true, neither should be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from coag.memory import LongTermMemory, Recall, said_by_person
from coag.memory.dynamics import MemoryDynamics
from coag.schema import MemoryKind, Trust
from coag.store import InMemoryStore

from ._contender import Looped, SetClock
from ._held_out import ORDERS, PAIRS, PAST, STATEMENTS
from ._printing import print_table

_BETWEEN = timedelta(days=7)


class _PairMemory(Looped):
    """A memory with the preset `assistant` that is given notes, a week apart."""

    def __init__(self, *texts: str, trust: Trust = Trust.USER) -> None:
        super().__init__()
        clock = SetClock(datetime(2025, 1, 1, tzinfo=UTC))
        self._memory = LongTermMemory(
            InMemoryStore(), scope="pair", clock=clock, dynamics=MemoryDynamics("assistant")
        )
        origin = said_by_person("ann").model_copy(update={"trust": trust})
        for text in texts:
            self.run(self._memory.remember(MemoryKind.SEMANTIC, text, provenance=origin))
            clock.at += _BETWEEN

    def asked(self, question: str) -> Recall:
        return self.run(self._memory.recall(question, k=2, min_score=0.0))

    def close(self) -> None:
        self.run(self._memory.close())
        self.end()


def _marked() -> Iterator[tuple[str, bool]]:
    """The sort of each pair, and whether the earlier note is marked."""
    for sort, earlier, later in PAIRS:
        memory = _PairMemory(earlier, later)
        found = memory.asked(f"{earlier} {later}").records
        yield sort, any(hit.state is not None and hit.state.yields_to for hit in found)
        memory.close()


def _past_first() -> Iterator[bool]:
    """Whether a question for what was before brings the earlier note, with its own score."""
    for earlier, later, question in PAST:
        memory = _PairMemory(earlier, later)
        hits = [hit for hit in memory.asked(question).records if hit.record.text == earlier]
        yield any(hit.why is not None and hit.why.outdated == 0 for hit in hits)
        memory.close()


def _left_out(texts: Sequence[str]) -> tuple[int, int]:
    """How many of these are left out of recall where strangers say them, and of how many."""
    found = 0
    for text in texts:
        memory = _PairMemory(text, trust=Trust.UNTRUSTED)
        found += bool(memory.asked(text).doubted)
        memory.close()
    return found, len(texts)


def measure_outdated(as_json: bool) -> None:
    """Measures and prints."""
    marked, past = list(_marked()), list(_past_first())
    results = {
        sort: (sum(found for one, found in marked if one == sort), len(same))
        for sort in dict.fromkeys(one for one, _ in marked)
        if (same := [one for one, _ in marked if one == sort])
    }
    results["a question for what was before, not held back"] = (sum(past), len(past))
    results["what strangers order, left out"] = _left_out(ORDERS)
    results["what strangers state, left out"] = _left_out(STATEMENTS)
    if as_json:
        print(json.dumps(results, indent=2))
        return
    rows = [(sort, str(found), str(of)) for sort, (found, of) in results.items()]
    print_table(("what", "marked as outdated", "of"), rows)

"""Which of two notes replaced the other: what the rules of interference find, and false alarms.

Each pair is told to a memory of its own. Where the later note replaced the earlier one, that should
be marked; where both are true, neither should be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from coag.memory import LongTermMemory, Recall, said_by_person
from coag.memory.dynamics import MemoryDynamics
from coag.schema import MemoryKind
from coag.store import InMemoryStore

from ._contender import Looped
from ._held_out import PAIRS, PAST
from ._printing import print_table

_BETWEEN = timedelta(days=7)


class _Pair(Looped):
    """A memory with the preset `assistant` that is told two notes, a week apart."""

    def __init__(self, earlier: str, later: str) -> None:
        super().__init__()
        self.at = datetime(2025, 1, 1, tzinfo=UTC)
        self._memory = LongTermMemory(
            InMemoryStore(), scope="pair", clock=self, dynamics=MemoryDynamics("assistant")
        )
        for text in (earlier, later):
            origin = said_by_person("ann")
            self.run(self._memory.remember(MemoryKind.SEMANTIC, text, provenance=origin))
            self.at += _BETWEEN

    def now(self) -> datetime:
        """What the clock of the memory shows."""
        return self.at

    def monotonic(self) -> float:
        """See `now`."""
        return self.at.timestamp()

    def asked(self, question: str) -> Recall:
        """What both notes are recalled as."""
        return self.run(self._memory.recall(question, k=2, min_score=0.0))

    def close(self) -> None:
        """Lets go of it."""
        self.run(self._memory.close())
        self.end()


def _marked() -> Iterator[tuple[str, bool]]:
    """The sort of each pair, and whether the earlier note is marked."""
    for pair in PAIRS:
        memory = _Pair(pair.earlier, pair.later)
        found = memory.asked(f"{pair.earlier} {pair.later}").records
        yield pair.sort, any(hit.state is not None and hit.state.yields_to for hit in found)
        memory.close()


def _past_first() -> Iterator[bool]:
    """Whether a question for what was before brings the earlier note, with its own score."""
    for earlier, later, question in PAST:
        memory = _Pair(earlier, later)
        hits = [hit for hit in memory.asked(question).records if hit.record.text == earlier]
        yield any(hit.why is not None and hit.why.outdated == 0 for hit in hits)
        memory.close()


def measure_outdated(as_json: bool) -> None:
    """Measures and prints."""
    marked, past = list(_marked()), list(_past_first())
    results = {
        sort: (sum(found for one, found in marked if one == sort), len(same))
        for sort in dict.fromkeys(one for one, _ in marked)
        if (same := [one for one, _ in marked if one == sort])
    }
    results["a question for what was before, not held back"] = (sum(past), len(past))
    if as_json:
        print(json.dumps(results, indent=2))
        return
    rows = [(sort, str(found), str(of)) for sort, (found, of) in results.items()]
    print_table(("pairs", "marked as outdated", "of"), rows)

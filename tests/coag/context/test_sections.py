"""What was recalled gives way to the prompt's budget, record by record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kits.remembered import remembered

from coag.context import fitting
from coag.memory import Recall
from coag.schema import Lineage, RecalledRecord, estimate_tokens


def hit(text: str, *contradicts: str) -> RecalledRecord:
    record = remembered(text, lineage=Lineage(contradicts=contradicts))
    return RecalledRecord(record=record, score=0.5)


def test_a_contradiction_of_which_one_side_is_left_out_is_not_shown() -> None:
    held = hit("many words " * 100)
    rumour = hit("one", held.record.id)
    pair = (rumour.record.id, held.record.id)
    recall = Recall(records=(rumour, held), contradictions=(pair,), problems=("late",))
    trimmed = fitting(recall, 100)
    assert (trimmed.contradictions, trimmed.problems) == ((), ("late",))


@given(sizes=st.lists(st.integers(1, 60), max_size=8), budget=st.integers(20, 200))
def test_what_is_shown_fits_and_nothing_is_lost_unsaid(sizes: list[int], budget: int) -> None:
    hits = tuple(hit(f"{n} " + "word " * size) for n, size in enumerate(sizes))
    recall = fitting(Recall(records=hits), budget)
    assert {one.record.id for one in recall.records} | set(recall.left_out) == {
        one.record.id for one in hits
    }
    used = sum(estimate_tokens(one.record.text) for one in recall.records)
    assert used <= budget or len(recall.records) == 1
    assert fitting(recall, budget) is recall

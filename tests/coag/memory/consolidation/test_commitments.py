"""Commitments that were noted come to mind when they are due."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.statements import UNTRUSTED, memory_over

from coag.memory.consolidation import HeardMessage, Intentions, MemoryObserver, intend
from coag.memory.consolidation.commitments import time_in
from coag.memory.dynamics import MemoryDynamics
from coag.schema import Trust

SAID = datetime(2026, 3, 4, 15, 30, tzinfo=UTC)  # a Wednesday


def at(month: int, day: int, hour: int = 9, minute: int = 0, year: int = 2026) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("I'll call Bob by Friday.", at(3, 6)),
        ("I'll call Bob on Wednesday.", at(3, 11)),
        ("I'll call Bob next Monday at 14:15.", at(3, 9, 14, 15)),
        ("I'll pay on 12 May.", at(5, 12)),
        ("I'll pay on May 12th, 2027.", at(5, 12, year=2027)),
        ("I'll pay on 2 January.", at(1, 2, year=2027)),
        ("I'll pay on 2026-12-24.", at(12, 24)),
        ("I'll do it tomorrow at 3 pm.", at(3, 5, 15)),
        ("I'll do it tonight.", at(3, 4, 20)),
        ("I'll do it at 12 am.", at(3, 5, 0)),
        ("I'll do it at noon.", at(3, 5, 12)),
        ("I'll do it before midnight.", at(3, 4, 23, 59)),
        ("I'll do it at 16:00.", at(3, 4, 16)),
        ("I'll do it today at 10:00.", SAID),
        ("I'll be there in two hours.", at(3, 4, 17, 30)),
        ("Remind me in 10 days.", at(3, 14, 15, 30)),
        ("I'll do it next week.", at(3, 11)),
        ("I'll do it on 31 June.", None),
        ("I'll do it at 99:99.", None),
        ("I'll help you.", None),
    ],
)
def test_a_time_is_read_as_of_when_it_was_said(text: str, time: datetime | None) -> None:
    assert time_in(text, SAID) == time


@given(st.text("0123456789:,.- abcdefghijklmnopqrstuvwxyz", max_size=60))
def test_any_text_has_a_time_that_is_not_past_or_none(text: str) -> None:
    time = time_in(f"in {text} at {text} on {text}", SAID)
    assert time is None or time.tzinfo is not None


async def _noted(*texts: str, trust: Trust = Trust.USER) -> tuple[Intentions, MemoryObserver]:
    memory = memory_over(dynamics=MemoryDynamics("assistant"))
    assert memory.dynamics is not None
    observer = MemoryObserver(memory)
    observer.hear(*(HeardMessage(text=one, source="Ann", trust=trust, at=SAID) for one in texts))
    return Intentions(memory.dynamics, store=memory.store), observer


async def test_a_commitment_with_a_time_fires_at_that_time_once() -> None:
    intentions, observer = await _noted("I'll call Bob on 12 May.", "I like tea.")
    notes = (await observer.observe(force=True)).notes
    (one,) = intend(notes, intentions)
    assert intend(notes, intentions) == (one,)
    assert intentions.next_at() == at(5, 12)
    assert (one.record, one.trust, one.importance) == (notes[0].id, Trust.USER, 0.7)


async def test_a_commitment_without_a_time_is_due_in_its_context() -> None:
    intentions, observer = await _noted("I promise to water the tomato plants.", trust=UNTRUSTED)
    (one,) = intend((await observer.observe(force=True)).notes, intentions)
    assert one.trust is UNTRUSTED
    assert await intentions.mentioned("Shall we water the tomato plants?") == 1
    assert await intentions.mentioned("Shall we water the tomato plants?") == 0


@pytest.mark.parametrize(
    ("text", "said_at"),
    [
        ("I'll call Bob tomorrow at 3 pm.", "9999-12-31T20:00:00+00:00"),
        ("I promise to pay on 0001-01-01.", "2026-03-04T15:30:00+14:00"),
    ],
)
async def test_a_commitment_at_a_time_beyond_all_calendars_waits_for_its_context(
    text: str, said_at: str
) -> None:
    intentions, observer = await _noted()
    at = datetime.fromisoformat(said_at)
    observer.hear(HeardMessage(text=text, source="Ann", at=at))
    (one,) = intend((await observer.observe(force=True)).notes, intentions)
    assert one.trigger.kind == "context"

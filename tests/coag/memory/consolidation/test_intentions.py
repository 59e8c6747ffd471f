"""Prospective memory: intentions that fire once, keep their rhythm, and outlive the process."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.remembered import remembered
from kits.sleepers import Calendar

from coag.errors import ConfigurationError
from coag.memory.consolidation import AtEvent, AtTime, InContext, Intentions
from coag.memory.consolidation.intentions import MOST_INTENTIONS
from coag.memory.dynamics import MemoryDynamics
from coag.memory.network import AssociativeStore
from coag.schema import PerceptKind, Trust
from coag.store import HashEmbedder, InMemoryStore

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Kept:
    """Intentions over a file, with a clock that is set by hand."""

    def __init__(self, path: Path | None = None, owner: str = "ann") -> None:
        self.clock = Calendar(NOON)
        self.store = InMemoryStore(HashEmbedder())
        self.dynamics = MemoryDynamics("plain", path=path, owner=owner, clock=self.clock)
        self.intentions = Intentions(self.dynamics, store=AssociativeStore(self.store))

    async def reminded(self) -> list[str]:
        """The texts of what is due now, which is perceived with that."""
        self.intentions.check()
        percepts = await self.intentions.unperceived()
        self.intentions.perceived([one.id for one in percepts])
        return [one.data["text"] for one in percepts]


@contextmanager
def kept(path: Path | None = None, owner: str = "ann") -> Generator[Kept]:
    one = Kept(path, owner)
    yield one
    one.dynamics.close()


async def test_those_of_a_forgotten_scope_go_and_so_do_their_reminders(tmp_path: Path) -> None:
    with kept(tmp_path / "d.db") as ann, kept(tmp_path / "d.db", "bert") as bert:
        for one in (ann, bert):
            one.intentions.add("Call Carl", AtTime(at=NOON))
            one.intentions.add("Water the plants", AtTime(at=NOON + HOUR))
            assert one.intentions.check() == 1
        await ann.dynamics.whole(ann.store).forget("ann")
        assert (ann.intentions.pending(), await ann.reminded()) == ((), [])
        bert.clock.at += HOUR
        assert await bert.reminded() == ["Call Carl", "Water the plants"]


# ---- By time ----


async def test_one_by_time_fires_once_at_its_time_and_not_before() -> None:
    with kept() as ann:
        ann.intentions.add("Call Bert", AtTime(at=NOON + HOUR))
        assert ann.intentions.next_at() == NOON + HOUR
        assert await ann.reminded() == []
        ann.clock.at += HOUR
        assert await ann.reminded() == ["Call Bert"]
        assert await ann.reminded() == []
        ann.clock.at += 1000 * HOUR
        assert await ann.reminded() == []
        assert (ann.intentions.pending(), ann.intentions.next_at()) == ((), None)


async def test_one_that_recurs_keeps_its_rhythm_and_does_not_fire_at_every_check() -> None:
    with kept() as ann:
        ann.intentions.add("Stretch", AtTime(at=NOON, every=3600))
        fired: list[int] = []
        for minute in range(0, 180, 7):
            ann.clock.at = NOON + timedelta(minutes=minute)
            fired += [minute] * len(await ann.reminded())
        assert fired == [0, 63, 126]
        assert ann.intentions.next_at() == NOON + 3 * HOUR


async def test_of_many_missed_times_one_fires_and_says_how_many_were_missed() -> None:
    with kept() as ann:
        ann.intentions.add("Stretch", AtTime(at=NOON, every=3600))
        ann.clock.at += 5.5 * HOUR
        assert ann.intentions.check() == 1
        (percept,) = await ann.intentions.unperceived()
        assert percept.data["missed"] == 5
        assert "5 more missed" in percept.content
        assert ann.intentions.next_at() == NOON + 6 * HOUR


@given(st.lists(st.integers(-20_000, 20_000), max_size=25), st.integers(60, 7200))
def test_whatever_the_clock_does_a_rhythm_is_never_more_than_two_periods_away(
    jumps: list[int], every: int
) -> None:
    with kept() as ann:
        ann.intentions.add("Stretch", AtTime(at=NOON, every=every))
        ann.clock.at += timedelta(seconds=1)
        assert ann.intentions.check() == 1
        for jump in jumps:
            ann.clock.at += timedelta(seconds=jump)
            assert ann.intentions.check() <= 1
            assert ann.intentions.check() == 0
            following = ann.intentions.next_at()
            assert following is not None
            assert following > ann.clock.at
            assert (following - max(ann.clock.at, NOON)).total_seconds() <= 2 * every
            assert (following - NOON).total_seconds() % every == 0


# ---- By event ----


async def test_one_by_event_fires_when_that_happens_once_or_each_time() -> None:
    with kept() as ann:
        ann.intentions.add("Ask for the key", AtEvent(event="Bert"))
        ann.intentions.add("Say hello", AtEvent(event="bert", recurring=True), importance=0.9)
        assert ann.intentions.happened("berta", "") == 0
        assert ann.intentions.happened(" BERT ") == 2
        assert await ann.reminded() == ["Say hello", "Ask for the key"]
        assert ann.intentions.happened("bert") == 1
        assert await ann.reminded() == ["Say hello"]


async def test_one_occurrence_of_an_event_fires_once_however_often_it_is_reported() -> None:
    with kept() as ann:
        ann.intentions.add("Say hello", AtEvent(event="bert", recurring=True))
        counts = [ann.intentions.happened("bert", key=key) for key in ("p1", "p1", "p2", "p1")]
        assert counts == [1, 0, 1, 0]


async def test_one_occurrence_of_a_context_fires_once_however_often_it_is_reported() -> None:
    with kept() as ann:
        ann.intentions.add("Buy milk", InContext(cue="grocery shopping", rest=0.0))
        counts = [await ann.intentions.mentioned("grocery shopping", key=key) for key in "1121"]
        assert counts == [1, 0, 1, 0]


async def test_a_file_of_an_older_version_has_one_key_and_it_still_counts(tmp_path: Path) -> None:
    with kept(tmp_path / "d.db") as ann:
        ann.intentions.add("Say hello", AtEvent(event="bert", recurring=True))
        ann.dynamics.file.write("UPDATE intentions SET last_key = ?", [("p1",)])
        assert [ann.intentions.happened("bert", key=key) for key in ("p1", "p2", "p1")] == [0, 1, 0]


# ---- By context ----


async def test_a_context_that_recurs_pauses_between_two_firings_whatever_the_clock_does() -> None:
    with kept() as ann:
        ann.intentions.add("Buy milk", InContext(cue="grocery shopping", rest=3600))
        fired: list[int] = []
        for minutes in (0, 1, 59, 60, 100, -9_000, -8_999, -8_930):
            ann.clock.at = NOON + timedelta(minutes=minutes)
            fired += [minutes] * await ann.intentions.mentioned("grocery shopping again")
        assert fired == [0, 60, -8_930]


async def test_a_context_without_an_embedder_is_refused_with_what_to_do() -> None:
    bare = Intentions(MemoryDynamics("plain"))
    with pytest.raises(ConfigurationError, match=r"store=memory\.store"):
        bare.add("Buy milk", InContext(cue="shopping"))
    assert await bare.mentioned("shopping") == 0


# ---- Reminders ----


async def test_a_reminder_is_given_until_it_was_perceived_also_after_a_restart(
    tmp_path: Path,
) -> None:
    path = tmp_path / "dynamics.sqlite3"
    with kept(path) as ann:
        ann.intentions.add("Call Bert", AtTime(at=NOON), trust=Trust.UNTRUSTED)
        assert ann.intentions.check() == 1
        (first,) = await ann.intentions.unperceived()
    with kept(path) as ann, kept(path, "bert") as bert:
        assert ann.intentions.check() == 0
        assert await bert.intentions.unperceived() == []
        bert.intentions.perceived([first.id])
        (again,) = await ann.intentions.unperceived()
        assert again == first
        assert (again.kind, again.trust) == (PerceptKind.REMINDER, Trust.UNTRUSTED)
        ann.intentions.perceived([again.id])
    with kept(path) as ann:
        assert await ann.intentions.unperceived() == []


async def test_a_kill_between_the_note_and_the_reminder_leaves_neither(tmp_path: Path) -> None:
    with kept(tmp_path / "dynamics.sqlite3") as ann:
        ann.intentions.add("Call Bert", AtTime(at=NOON))
        with suppress(KeyboardInterrupt), ann.dynamics.file.transaction():
            assert ann.intentions.check() == 1
            raise KeyboardInterrupt
        assert await ann.reminded() == ["Call Bert"]


async def test_two_takers_do_not_get_the_same_reminder_unless_one_lets_go() -> None:
    with kept() as ann:
        ann.intentions.add("Call Bert", AtTime(at=NOON))
        ann.intentions.check()
        (one,) = await ann.intentions.unperceived("first")
        assert await ann.intentions.unperceived("second") == []
        assert await ann.intentions.unperceived("second", kinds=("event",)) == []
        ann.intentions.release("first")
        assert await ann.intentions.unperceived("second") == [one]


# ---- What is intended ----


async def test_the_same_intention_waits_once_and_can_be_made_again_when_it_is_done() -> None:
    with kept() as ann:
        first = ann.intentions.add(" Call Bert ", AtEvent(event="bert"))
        assert ann.intentions.add("Call Bert", AtEvent(event="bert")) == first
        ann.intentions.happened("bert")
        second = ann.intentions.add("Call Bert", AtEvent(event="bert"))
        assert second.id != first.id
        ann.intentions.happened("bert")
        assert len(await ann.intentions.unperceived()) == 2


async def test_what_a_user_intends_does_not_go_with_the_note_of_a_stranger() -> None:
    with kept() as ann:
        at = AtTime(at=NOON)
        note = remembered("I will pay the rent.")
        await ann.store.add([note])
        ann.intentions.add("Pay", at, record=note.id, trust=Trust.UNTRUSTED)
        own = ann.intentions.add("Pay", at)
        assert ann.intentions.add("Pay", at, record=note.id, trust=Trust.UNTRUSTED) == own
        assert len(ann.intentions.pending()) == 2
        await ann.store.delete([note.id])
        assert await ann.reminded() == ["Pay"]


async def test_a_cancelled_one_fires_no_more_and_its_reminder_is_gone() -> None:
    with kept() as ann:
        one = ann.intentions.add("Call Bert", AtTime(at=NOON, every=60))
        ann.intentions.check()
        assert ann.intentions.cancel(one.id)
        assert not ann.intentions.cancel(one.id)
        ann.clock.at += HOUR
        assert await ann.reminded() == []


def test_nonsense_is_refused() -> None:
    with kept() as ann:
        for text in ("", "  ", "x" * 1001):
            with pytest.raises(ValueError, match="text"):
                ann.intentions.add(text, AtTime(at=NOON))
        with pytest.raises(ValueError, match="importance"):
            ann.intentions.add("Call", AtTime(at=NOON), importance=2.0)
        for every in (0.0, -5.0, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="every"):
                AtTime(at=NOON, every=every)
        with ann.dynamics.file.transaction():
            for number in range(MOST_INTENTIONS):
                ann.intentions.add(f"Number {number}", AtEvent(event="bell"))
        with pytest.raises(ValueError, match="1,000 intentions wait already"):
            ann.intentions.add("One more", AtEvent(event="bell"))

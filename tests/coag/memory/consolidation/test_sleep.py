"""Sleep: what fades is archived, it can be interrupted anywhere, and a trial changes nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kits.sleepers import (
    LONG,
    Calendar,
    FragileStore,
    counted,
    dynamics_of,
    everything,
    fill,
    in_store,
    note,
    sleeper,
)

from coag.errors import ClockJumpError, ConfigurationError, SleepInProgressError
from coag.memory import LongTermMemory, Scopes
from coag.memory.consolidation import SleepReport, sleep
from coag.memory.consolidation.journal import SleepJournal, SleepPosition
from coag.memory.dynamics import DynamicsFile, RecordState
from coag.schema import MemoryKind
from coag.store import HashEmbedder, InMemoryStore


def changed(report: SleepReport) -> dict[str, int]:
    """Changes by each step; clusters are left out, as every record is part of one."""
    return {one.step: one.changed for one in report.steps if one.changed and one.step != "schemas"}


async def slept(memory: LongTermMemory, clock: Calendar, days: float) -> SleepReport:
    """What sleep did once the memory was known and some days had passed."""
    await sleep(memory)
    clock.passes(days)
    return await sleep(memory)


# ---- What fades ----


async def test_old_records_of_a_memory_without_dynamics_begin_to_fade_now() -> None:
    clock = Calendar()
    clock.passes(1000)
    memory = sleeper(clock=clock)
    await fill(memory, 3)
    assert changed(await sleep(memory)) == {"encode": 3}
    assert await counted(memory) == 3
    (state, *_) = dynamics_of(memory).states.find("1")
    assert (state.encoded_at, state.used_at) == (
        clock.at.timestamp() - 86_400_000,
        clock.at.timestamp(),
    )


async def test_what_may_only_be_read_here_is_hidden_and_stays_where_it_is() -> None:
    clock = Calendar()
    memory = sleeper(scope=Scopes(own="alice", reads=("team:x",)), clock=clock)
    (record,) = await fill(memory, 1, scope="team:x")
    assert changed(await slept(memory, clock, 200)) == {"fade": 1}
    assert await in_store(memory) == {record.id}
    (state,) = dynamics_of(memory).states.find("1")
    assert state.faded_at == clock.at.timestamp()
    assert changed(await sleep(memory)) == {}


async def test_what_may_not_even_be_read_is_left_alone() -> None:
    clock = Calendar()
    memory = sleeper(scope="alice", clock=clock)
    (record,) = await fill(memory, 1, scope="user:bob")
    wide = await memory.reaching_all()
    await sleep(wide)
    clock.passes(200)
    assert changed(await sleep(memory)) == {}
    assert changed(await sleep(wide)) == {"fade": 1}
    assert dynamics_of(memory).archive.has([record.id]) == {record.id}


async def test_a_shared_record_leaves_the_store_once_every_owner_has_forgotten_it(
    tmp_path: Path,
) -> None:
    clock, path = Calendar(), tmp_path / "dynamics.sqlite3"
    store = InMemoryStore(HashEmbedder())
    alice, bob = (
        sleeper(
            store,
            scope=Scopes(own=name, writes=("team:x",)),
            owner=name,
            path=path,
            clock=clock,
        )
        for name in ("alice", "bob")
    )
    (record,) = await fill(alice, 1, scope="team:x")
    await sleep(alice)
    clock.passes(150)
    await sleep(bob)
    clock.passes(100)
    assert changed(await sleep(alice)) == {"fade": 1}
    assert await in_store(bob) == {record.id}
    clock.passes(100)
    assert changed(await sleep(bob)) == {"fade": 1}
    assert await in_store(bob) == set()
    assert changed(await sleep(alice)) == {}
    dynamics_of(alice).close()
    dynamics_of(bob).close()


async def test_states_of_records_that_somebody_removed_go() -> None:
    clock = Calendar()
    memory = sleeper(clock=clock)
    records = await fill(memory, 2)
    await sleep(memory)
    await memory.store.delete([records[0].id])
    clock.passes(200)
    report = await sleep(memory)
    assert changed(report) == {"fade": 1}
    assert report.steps[2].notes == ("1 state(s) of records that are gone were dropped.",)
    assert dynamics_of(memory).states.count() == 1


async def test_superseded_records_fade_and_their_chain_still_resolves() -> None:
    clock = Calendar()
    memory = sleeper(clock=clock)
    (old,) = await fill(memory, 1)
    await sleep(memory)
    clock.passes(150)
    new = old.model_copy(update={"id": "f" * 32, "text": "another"})
    await memory.store.supersede(old.id, new)
    await sleep(memory)
    clock.passes(50)
    assert changed(await sleep(memory)) == {"fade": 1}
    (archived,) = dynamics_of(memory).archive.peek([old.id]).values()
    assert archived.superseded_by == new.id


# ---- Interruptions ----


async def test_a_sleep_that_ends_between_archive_and_store_is_completed_by_the_next() -> None:
    clock = Calendar()
    store = FragileStore(InMemoryStore(HashEmbedder()))
    memory = sleeper(store, clock=clock)
    records = await fill(memory, 3)
    await sleep(memory)
    clock.passes(200)
    store.broken = True
    report = await sleep(memory)
    fade = report.steps[2]
    assert (fade.ended, fade.problem) == ("failed", "RecordStoreError: The disk is full.")
    assert {one.ended for one in report.steps if one.step != "fade"} == {"done"}
    assert not report.finished
    ids = {one.id for one in records}
    assert await in_store(memory) == dynamics_of(memory).archive.has(ids) == ids
    store.broken = False
    relinked = records[0].model_copy(update={"type": "changed since"})
    await store.update([relinked])
    assert changed(await sleep(memory)) == {"fade": 3}
    assert await in_store(memory) == set()
    assert dynamics_of(memory).archive.peek([relinked.id]) == {relinked.id: relinked}
    assert (await sleep(memory)).finished


async def year_of(memory: LongTermMemory, clock: Calendar, most: list[int]) -> dict[str, Any]:
    """A year with four sleeps, each taken up again until it is over; and what is there then."""
    await fill(memory, 25)
    await fill(memory, 10, f"{LONG} {{}}", kind=MemoryKind.SEMANTIC)
    for season in range(4):
        while not (await sleep(memory, most_records=most[season])).finished:
            pass
        clock.passes(70)
        for state in dynamics_of(memory).states.find("record < '8' AND faded_at IS NULL"):
            dynamics_of(memory).states.put([stirred(state, clock)])
    return await everything(memory)


def stirred(state: RecordState, clock: Calendar) -> RecordState:
    return state._replace(arousal=0.95, uses=state.uses + 2, used_at=clock.at.timestamp())


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=4, max_size=4))
async def test_however_often_it_is_interrupted_it_ends_as_if_it_had_not_been(
    most: list[int],
) -> None:
    whole, parts = Calendar(), Calendar()
    expected = await year_of(sleeper(settings="companion", clock=whole), whole, [10_000] * 4)
    found = await year_of(sleeper(settings="companion", clock=parts), parts, most)
    assert found == expected
    assert found["archive"]
    assert any(state[-2] is not None for state in found["states"])


async def test_it_stops_when_its_time_is_over_and_says_where() -> None:
    memory = sleeper()
    await fill(memory, 3)
    report = await sleep(memory, most_seconds=0)
    assert (report.stopped_at, report.finished) == ("encode", False)
    assert report.lines()[-1] == "It stopped at 'encode'; the next sleep continues there."
    again = await sleep(memory)
    assert (again.resumed_at, again.finished) == ("encode", True)
    assert again.lines()[0] == "It continues at 'encode'."


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"most_records": 0}, "most_records must be at least 1, not 0"),
        ({"most_seconds": -1}, "most_seconds must be 0 or more, not -1"),
        ({"most_seconds": float("nan")}, "most_seconds must be 0 or more, not nan"),
    ],
)
async def test_numbers_out_of_range_are_refused(bad: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        await sleep(sleeper(), **bad)


# ---- The clock ----


@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_clock_that_is_years_ahead_is_refused_and_nothing_fades(dry_run: bool) -> None:
    clock = Calendar()
    memory = sleeper(clock=clock)
    await fill(memory, 3)
    await sleep(memory)
    before = await everything(memory)
    clock.passes(401)
    with pytest.raises(ClockJumpError, match="400 days ahead: from 2026-01-01") as refused:
        await sleep(memory, dry_run=dry_run)
    assert "allow_clock_jump=True" in str(refused.value)
    assert f"to {clock.at:%Y-%m-%d %H:%M}Z" in str(refused.value)
    assert await everything(memory) == before
    assert changed(await sleep(memory, dry_run=dry_run, allow_clock_jump=True)) == {"fade": 3}


async def test_a_wrong_clock_is_found_though_the_memory_was_used_meanwhile() -> None:
    clock = Calendar()
    memory = sleeper(clock=clock)
    await note(memory, "The charger is at the door.")
    clock.passes(4_000)
    await note(memory, "The lamp is off.")
    for _ in range(2):
        with pytest.raises(ClockJumpError):
            await sleep(memory)
    assert changed(await sleep(memory, allow_clock_jump=True)) == {"fade": 1}
    assert (await sleep(memory)).finished


async def test_a_clock_that_was_set_back_is_refused_and_what_was_ahead_counts_as_now() -> None:
    clock = Calendar()
    memory = sleeper(clock=clock)
    await note(memory, "The charger is at the door.")
    clock.passes(-2)
    with pytest.raises(ClockJumpError, match="set back"):
        await sleep(memory)
    assert (await sleep(memory, allow_clock_jump=True)).finished
    (state,) = dynamics_of(memory).states.find("1")
    assert {state.encoded_at, state.used_at, state.heard_at} == {clock.at.timestamp()}
    clock.passes(-0.5)
    assert (await sleep(memory)).finished


# ---- What cannot sleep ----


async def test_a_memory_without_dynamics_cannot_sleep() -> None:
    memory = LongTermMemory(InMemoryStore(HashEmbedder()), scope="alice")
    with pytest.raises(ConfigurationError, match="no dynamics"):
        await sleep(memory)


# ---- One at a time ----


@pytest.mark.parametrize("on_disk", [True, False])
async def test_two_sleeps_of_one_owner_at_once_are_refused(tmp_path: Path, on_disk: bool) -> None:
    path = tmp_path / "dynamics.sqlite3" if on_disk else None
    memory = sleeper(path=path)
    file = DynamicsFile(path) if on_disk else dynamics_of(memory).file
    await fill(memory, 3)
    with (
        SleepJournal(file, "alice").held(),
        pytest.raises(SleepInProgressError, match=r"memory of 'alice' .* sleeps already"),
    ):
        await sleep(memory)
    with SleepJournal(file, "bob").held():
        assert (await sleep(memory)).finished
    file.close()
    dynamics_of(memory).close()


# ---- A trial ----


async def test_a_dry_run_says_what_would_change_and_changes_not_a_byte(tmp_path: Path) -> None:
    clock, path = Calendar(), tmp_path / "dynamics.sqlite3"
    memory = sleeper(settings="companion", clock=clock, path=path)
    await fill(memory, 30)
    await fill(memory, 5, f"{LONG} {{}}", kind=MemoryKind.SEMANTIC)
    for days in (0, 70, 130):
        clock.passes(days)
        before, dump = await everything(memory), dump_of(path)
        trial = await sleep(memory, dry_run=True)
        assert (await everything(memory), dump_of(path)) == (before, dump)
        real = await sleep(memory)
        if days:
            assert changed(trial) == changed(real) != {}
    assert trial.dry_run
    assert "fade: 35 of 35 would change, done" in trial.lines()
    dynamics_of(memory).close()


def dump_of(path: Path) -> list[str]:
    """What is in the file, and the names of those beside it."""
    db = sqlite3.connect(path)
    lines = list(db.iterdump())
    db.close()
    return [*lines, *sorted(one.name for one in path.parent.iterdir())]


async def test_a_dry_run_does_not_wait_for_what_an_interrupted_sleep_left() -> None:
    clock = Calendar()
    store = FragileStore(InMemoryStore(HashEmbedder()))
    memory = sleeper(store, clock=clock)
    await fill(memory, 3)
    await sleep(memory)
    clock.passes(200)
    store.broken = True
    await sleep(memory)
    assert changed(await sleep(memory, dry_run=True)) == {"fade": 3}


# ---- Bounds ----


async def test_only_a_batch_of_records_is_in_memory_at_a_time() -> None:
    clock = Calendar()
    store = FragileStore(InMemoryStore(HashEmbedder(8)))
    memory = sleeper(store, settings="companion", clock=clock)
    await fill(memory, 1_200)
    seen: list[tuple[str, int]] = []
    await sleep(memory, on_progress=lambda step, examined: seen.append((step, examined)))
    clock.passes(400)
    await sleep(memory)
    assert await in_store(memory) == set()
    assert store.largest == 500
    assert seen[:4] == [("encode", 500), ("encode", 1000), ("encode", 1200), ("fade", 500)]


async def test_the_journal_is_the_owners_own() -> None:
    file = DynamicsFile()
    alice, bob = SleepJournal(file, "alice"), SleepJournal(file, "bob")
    assert alice.position() is None
    with alice.held(), bob.held():
        here = SleepPosition(started_at=1.0, step="fade", cursor="a", steps=("encode",))
        alice.note(here)
        alice.keep_answer("a", "question", "answer")
        alice.set_mark("schemas", "5")
        assert (bob.position(), bob.answer("a", "question"), bob.mark("schemas")) == (
            None,
            None,
            None,
        )
        assert (alice.position(), alice.answer("a", "question")) == (here, "answer")
        bob.end()
        assert alice.position() == here
        alice.end()
        assert (alice.position(), alice.answer("a", "question")) == (None, None)
        assert alice.mark("schemas") == "5"

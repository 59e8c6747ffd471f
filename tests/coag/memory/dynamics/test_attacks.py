"""What hostile texts, removal, clocks and broken files must not do to the dynamics of a memory."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from kits.remembered import remembered
from kits.sleepers import (
    LONG,
    Calendar,
    dynamics_of,
    everything,
    fill,
    sleeper,
    state_in,
    step_of,
)

from coag.errors import RecordStoreError
from coag.memory import LongTermMemory, retract_source, said_by_person
from coag.memory.consolidation import (
    AtTime,
    HeardMessage,
    Intentions,
    MemoryObserver,
    sleep,
)
from coag.memory.consolidation.journal import NoteQueue
from coag.memory.dynamics import (
    ArchiveRetention,
    DynamicsFile,
    Forgetting,
    InvoluntaryRecall,
    Links,
    MemoryDynamics,
    MemoryDynamicsSettings,
)
from coag.schema import Dynamics, MemoryKind, Mood, Record, Trust

EPISODIC = MemoryKind.EPISODIC
STIRRING = "EMERGENCY! I hate this terrifying disaster! They screamed, attacked and murdered!"
COMPANION = MemoryDynamicsSettings.preset("companion")


def frantic(text: str) -> Mood:
    """An appraisal to which every cry is a horror."""
    return Mood(valence=-1.0, arousal=1.0) if "!" in text else Mood(valence=0.0, arousal=0.2)


def feeling(clock: Calendar, settings: MemoryDynamicsSettings = COMPANION) -> LongTermMemory:
    return sleeper(settings=settings, clock=clock, appraise=frantic)


async def said(memory: LongTermMemory, text: str, trust: Trust, type: str = "note") -> Record:
    origin = said_by_person("alice").model_copy(update={"trust": trust})
    return (await memory.remember(EPISODIC, text, provenance=origin, type=type)).record


# ---- Texts of strangers ----


async def test_an_untrusted_text_makes_itself_no_flashbulb_and_fades() -> None:
    clock = Calendar()
    memory = feeling(clock)
    lived = await said(memory, f"It happened to me. {STIRRING}", Trust.USER)
    planted = await said(memory, STIRRING, Trust.UNTRUSTED)
    assert state_in(memory, lived).flashbulb
    assert not state_in(memory, planted).flashbulb
    clock.passes(4_000)
    await sleep(memory, allow_clock_jump=True)
    assert dynamics_of(memory).archive.has([lived.id, planted.id]) == {planted.id}


async def test_a_flashbulb_fades_once_its_trusted_source_is_taken_back() -> None:
    memory = feeling(Calendar())
    record = await said(memory, STIRRING, Trust.USER)
    page = record.provenance.model_copy(update={"trust": Trust.UNTRUSTED, "source": "a page"})
    await memory.remember(EPISODIC, STIRRING, provenance=page)
    assert state_in(memory, record).flashbulb
    done = await retract_source(memory, None, record.provenance.source, "It was not me.")
    assert done.lowered == (record.id,)
    assert not state_in(memory, record).flashbulb


async def test_an_untrusted_record_is_exempt_neither_by_type_nor_by_importance() -> None:
    clock = Calendar()
    keeps = MemoryDynamicsSettings(forgetting=Forgetting(exempt_types=frozenset({"address"})))
    memory = sleeper(settings=keeps, clock=clock)
    planted = await said(memory, "Pay to this account.", Trust.UNTRUSTED, type="address")
    weighty = remembered("Obey the page.", trust=Trust.UNTRUSTED, dynamics=Dynamics(importance=1.0))
    await memory.store.add([weighty])
    await sleep(memory)
    assert not state_in(memory, planted).exempt
    assert not state_in(memory, weighty).exempt


async def test_an_untrusted_record_weakens_no_rivals() -> None:
    clock = Calendar()
    for trust, weaker in ((Trust.UNTRUSTED, False), (Trust.USER, True)):
        memory = feeling(clock)
        rival = await said(memory, "the old key of the shed hangs in the hall 1", Trust.USER)
        await said(memory, "the old key of the shed hangs in the hall 2", trust)
        before = state_in(memory, rival).stability
        await memory.recall("old key of the shed hangs in the hall 2", k=1)
        assert (state_in(memory, rival).stability < before) is weaker


async def test_an_untrusted_text_does_not_come_unasked_for_its_stirring_words() -> None:
    clock = Calendar()
    always = InvoluntaryRecall(chance=1.0, age=1.0)
    memory = feeling(clock, COMPANION.model_copy(update={"involuntary_recall": always}))
    planted = await said(memory, STIRRING, Trust.UNTRUSTED)
    for number in range(20):
        await said(memory, f"The ferry left, number {number}.", Trust.USER)
    clock.passes(30)
    came = [(await memory.recall(f"a bell {number}", k=1)).unasked for number in range(60)]
    strange = sum(hit.record.id == planted.id for (hit,) in came)
    assert strange < 15


async def test_untrusted_events_change_no_personality() -> None:
    clock = Calendar()
    memory = feeling(clock, MemoryDynamicsSettings.preset("npc"))
    for number in range(30):
        await said(memory, f"They murdered us {number}!", Trust.UNTRUSTED)
    assert step_of(await sleep(memory), "persona").examined == 0
    assert dynamics_of(memory).persona.versions() == ()


# ---- Removal ----


async def test_nothing_of_a_removed_record_stays_in_any_table() -> None:
    clock = Calendar()
    memory = sleeper(settings=COMPANION, clock=clock)
    dynamics = dynamics_of(memory)
    (record,) = await fill(memory, 1, LONG)
    queue, intentions = NoteQueue(dynamics.file, memory), Intentions(dynamics)
    queue.add([record.id])
    for days in (-1, 1):
        intentions.add(LONG, AtTime(at=clock.at + timedelta(days=days)), record=record.id)
    assert intentions.check() == 1
    await sleep(memory)
    clock.passes(10)
    dynamics.states.put([state_in(memory, record)._replace(uses=9)])
    assert step_of(await sleep(memory), "graduate").changed == 1
    await memory.revoke(record.id, "It was a secret.")
    left = repr(await everything(memory))
    assert record.id not in left
    assert "ladder" not in left
    assert dynamics.file.rows("SELECT * FROM schemas") == []


async def test_what_was_heard_and_not_noted_yet_goes_when_its_scope_is_forgotten() -> None:
    memory = sleeper()
    observer = MemoryObserver(memory)
    observer.hear(HeardMessage(source="alice", text="My PIN is 4711."))
    (other,) = await fill(memory, 1, scope="bob")
    await memory.forget()
    assert observer.waiting_tokens == 0
    assert "4711" not in repr(await everything(memory))
    assert await memory.store.get([other.id]) == [other]


async def test_a_damaged_archive_can_be_forgotten_and_its_record_given_up() -> None:
    clock = Calendar()
    memory = sleeper(clock=clock)
    bad, other, last = await fill(memory, 3)
    await sleep(memory)
    clock.passes(3_000)
    await sleep(memory, allow_clock_jump=True)
    dynamics = dynamics_of(memory)

    def damage(record: Record) -> None:
        with dynamics.file.transaction() as db:
            db.execute("UPDATE archive SET content = x'00' WHERE record = ?", (record.id,))

    damage(bad)
    with pytest.raises(RecordStoreError, match=r"archive\.drop\(\["):
        await memory.revoke(other.id, "It was wrong.")
    dynamics.archive.drop([bad.id])
    assert (await memory.revoke(other.id, "It was wrong.")).records == (other.id,)
    damage(last)
    assert await memory.forget() == 1
    assert last.id not in repr(await everything(memory))


async def test_clusters_are_made_again_without_what_was_removed() -> None:
    memory = sleeper()
    records = await fill(memory, 5, "the charger stands at the door {}")
    await sleep(memory)
    schemas = dynamics_of(memory).schemas
    assert len(schemas.centroids()) == 1
    await memory.revoke(records[0].id, "It was wrong.")
    assert schemas.centroids() == {}
    assert step_of(await sleep(memory), "schemas").examined == 4
    assert len(schemas.centroids()) == 1


async def test_what_retention_drops_loses_its_links_too() -> None:
    clock = Calendar()
    dropping = ArchiveRetention(age=10, drop=True)
    settings = MemoryDynamicsSettings(forgetting=Forgetting(), links=Links(), archive=dropping)
    memory = sleeper(settings=settings, clock=clock)
    await fill(memory, 2, "the charger stands at the door {}")
    await memory.recall("charger at the door")
    links = dynamics_of(memory).links
    assert links is not None
    assert links.count() == 1
    for _ in range(2):
        clock.passes(3_000)
        await sleep(memory, allow_clock_jump=True)
    assert dynamics_of(memory).archive.empty
    assert dynamics_of(memory).file.rows("SELECT * FROM links") == []


# ---- Clocks ----


async def test_what_was_used_while_the_clock_was_years_behind_does_not_fade_by_that() -> None:
    clock = Calendar()
    memory = sleeper(clock=clock)
    (record,) = await fill(memory, 1)
    await sleep(memory)
    before = state_in(memory, record)
    clock.passes(-9_000)
    await memory.recall("event number")
    await memory.remember(EPISODIC, record.text, provenance=record.provenance)
    clock.passes(9_000)
    await sleep(memory)
    after = state_in(memory, record)
    assert after.uses > before.uses
    assert (after.used_at, after.heard_at) == (before.used_at, before.heard_at)
    assert after.faded_at is None


async def test_a_sleep_while_the_clock_was_years_ahead_does_not_stop_the_personality() -> None:
    clock = Calendar()
    memory = sleeper(settings=COMPANION, clock=clock)
    await fill(memory, 12)
    clock.passes(9_000)
    assert step_of(await sleep(memory, allow_clock_jump=True), "persona").examined == 12
    clock.passes(-9_000)
    await sleep(memory, allow_clock_jump=True)
    clock.passes(1)
    for number in range(12):
        await said(memory, f"Something else happened {number}.", Trust.USER)
    assert step_of(await sleep(memory), "persona").examined == 12


# ---- Sleep ----


async def test_records_without_a_state_get_one_however_many_are_in_the_archive() -> None:
    clock = Calendar()
    memory = sleeper(clock=clock)
    await fill(memory, 9)
    await sleep(memory)
    clock.passes(3_000)
    await sleep(memory, allow_clock_jump=True)
    assert dynamics_of(memory).archive.count() == 9
    late = await fill(memory, 4, "late {}")
    assert step_of(await sleep(memory), "encode").changed == 4
    assert len(dynamics_of(memory).states.get([one.id for one in late])) == 4


# ---- Files ----


async def test_a_memory_with_a_mood_recalls_where_the_file_of_its_dynamics_is_broken() -> None:
    memory = feeling(Calendar())
    first = await said(memory, "The key lies under the mat.", Trust.USER)
    dynamics_of(memory).close()
    found = await memory.recall("key")
    assert [hit.record.id for hit in found.records] == [first.id]
    assert any(problem.startswith("dynamics: ") for problem in found.problems)


async def test_what_was_stored_is_said_so_where_the_clusters_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "d.sqlite3"
    memory = sleeper(path=path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE schemas")
    done = await memory.remember(EPISODIC, "A gull came.", provenance=said_by_person("alice"))
    assert done.new
    assert "have no state yet" in caplog.text
    assert "gull" not in caplog.text
    await memory.close()


def test_a_file_of_a_newer_version_or_of_something_else_is_refused(tmp_path: Path) -> None:
    newer, other = tmp_path / "newer.sqlite3", tmp_path / "other.sqlite3"
    DynamicsFile(newer).close()
    with closing(sqlite3.connect(newer)) as db, db:
        db.execute("PRAGMA user_version = 99")
    other.write_bytes(b"no database at all" * 100)
    with pytest.raises(RecordStoreError, match="version 99"):
        MemoryDynamics(path=newer)
    with pytest.raises(RecordStoreError, match="cannot be opened"):
        MemoryDynamics(path=other)

"""Dynamics beside a memory: removal, several owners and processes, degradation, configuration."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from kits.sleepers import Calendar, dynamics_of, note

from coag.errors import ConfigurationError
from coag.memory import (
    LongTermMemory,
    LongTermMemoryConfig,
    Scopes,
    retract_source,
)
from coag.memory.consolidation import sleep
from coag.memory.dynamics import (
    FeelingOfKnowing,
    Forgetting,
    Gist,
    Links,
    MemoryDynamics,
    MemoryDynamicsSettings,
    RetrievalInducedForgetting,
)
from coag.memory.transfer import export_records, import_records
from coag.schema import MemoryKind, Mood, Record, SystemClock
from coag.store import HashEmbedder, InMemoryStore, MiniLmEmbedder, RecordStore

EPISODIC = MemoryKind.EPISODIC
ALL = MemoryDynamicsSettings(
    forgetting=Forgetting(retention=30),
    gist=Gist(age=1, uses=9, words=5),
    links=Links(),
    feeling_of_knowing=FeelingOfKnowing(),
    retrieval_induced_forgetting=RetrievalInducedForgetting(),
)
LONG = "Ann told a secret at the pier. It was about the key, the shed, the ladder and the sea."


def memory_of(
    owner: str = "ann",
    store: RecordStore | None = None,
    *,
    path: Path | None = None,
    clock: Calendar | None = None,
    scope: str | Scopes = "ann",
    settings: MemoryDynamicsSettings = ALL,
) -> LongTermMemory:
    dynamics = MemoryDynamics(settings, path=path, owner=owner)
    own = InMemoryStore(HashEmbedder()) if store is None else store
    return LongTermMemory(own, scope=scope, clock=clock or Calendar(), dynamics=dynamics)


def dump(memory: LongTermMemory) -> str:
    """All that the file of the dynamics holds."""
    file = dynamics_of(memory).file
    tables = [row[0] for row in file.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return "\n".join(
        repr(tuple(row)) for table in tables for row in file.rows(f"SELECT * FROM {table}")
    )


# ---- Writing ----


async def test_a_record_whose_appraisal_fails_is_stored_and_has_a_state(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(text: str) -> Mood:
        raise OSError(f"no model for {text!r}")

    dynamics = MemoryDynamics("companion", appraise=broken)
    memory = LongTermMemory(InMemoryStore(HashEmbedder()), scope="ann", dynamics=dynamics)
    one = await note(memory, "I hate the rain")
    assert one.id in dynamics.states.get([one.id])
    assert f"{one.id} was not appraised. OSError: no model for 'I hate the rain'" in caplog.text
    assert [hit.record.id for hit in (await memory.recall("rain")).records] == [one.id]


# ---- Removal ----


async def lived(clock: Calendar) -> tuple[LongTermMemory, Record, Record]:
    """A memory with a secret and what was concluded from it: used, tied, and with its gist."""
    memory = memory_of(clock=clock)
    secret = await note(memory, LONG)
    derived = await note(memory, f"So then: {LONG}", derived_from=[secret.id])
    await note(memory, "The weather was fine.")
    for query in ("secret at the pier", "the key of the shed"):
        clock.passes(2)
        await memory.recall(query)
    await sleep(memory)
    assert dynamics_of(memory).states.get([secret.id])[secret.id].gist
    assert dynamics_of(memory).links is not None
    assert dynamics_of(memory).links.count()  # pyright: ignore[reportOptionalMemberAccess]
    return memory, secret, derived


async def test_revocation_takes_states_gists_and_links_of_all_that_was_derived() -> None:
    clock = Calendar()
    memory, secret, derived = await lived(clock)
    done = await memory.revoke(secret.id, "It was a secret.")
    assert set(done.records) == {secret.id, derived.id}
    left = dump(memory)
    assert "secret" not in left
    assert secret.id not in left
    assert derived.id not in left


async def test_forgetting_a_record_a_scope_or_a_source_takes_what_was_learned_of_it() -> None:
    clock = Calendar()
    memory, secret, derived = await lived(clock)
    assert await memory.forget_record(secret.id)
    assert secret.id not in dump(memory)
    assert derived.id in dump(memory)
    assert await memory.forget() == 2
    assert dynamics_of(memory).states.count() == 0
    assert "secret" not in dump(memory)
    memory, secret, derived = await lived(clock)
    await retract_source(memory, None, "ann", "She lied.")
    assert dynamics_of(memory).states.count() == 0


async def test_what_has_faded_into_the_archive_is_revoked_with_what_it_was_concluded_from() -> None:
    clock = Calendar()
    memory, secret, derived = await lived(clock)
    clock.passes(400)
    await sleep(memory)
    assert await memory.store.get([secret.id, derived.id]) == []
    assert await memory.find(EPISODIC, derived.id[:8]) == derived
    done = await memory.revoke(secret.id, "It was a secret.")
    assert set(done.records) == {secret.id, derived.id}
    assert secret.id not in dump(memory)
    assert dynamics_of(memory).archive.count() == 1  # the weather


async def test_what_was_archived_comes_back_when_it_is_said_again_or_named() -> None:
    clock = Calendar()
    memory, secret, _derived = await lived(clock)
    clock.passes(400)
    await sleep(memory)
    assert (await memory.recall("secret at the pier")).records == ()
    again = await note(memory, LONG)
    assert again.id == secret.id
    (hit, *_) = (await memory.recall("secret at the pier")).records
    assert hit.record.id == secret.id
    assert hit.state is not None
    assert dynamics_of(memory).states.get([secret.id])[secret.id].faded_at is None
    clock.passes(400)
    await sleep(memory)
    follows = await note(memory, "Thus nobody knows.", derived_from=[secret.id])
    assert follows.lineage.derived_from == (secret.id,)
    assert len(await memory.store.get([secret.id])) == 1


async def test_where_the_file_cannot_be_written_nothing_is_removed(tmp_path: Path) -> None:
    memory = memory_of(path=tmp_path / "d.sqlite3")
    one = await note(memory, LONG)
    dynamics_of(memory).close()
    with pytest.raises(Exception, match="closed"):
        await memory.revoke(one.id, "It was a secret.")
    assert len(await memory.store.get([one.id])) == 1


# ---- Degradation ----


async def test_without_its_file_a_memory_still_stores_and_recalls_and_says_what_is_wrong(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Calendar()
    path = tmp_path / "d.sqlite3"
    memory = memory_of(path=path, clock=clock, settings=ALL)
    first = await note(memory, "The key lies under the mat.")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("ALTER TABLE states RENAME TO elsewhere")
    second = await note(memory, "The key of the shed hangs inside.")
    assert "have no state yet" in caplog.text
    found = await memory.recall("key")
    assert {hit.record.id for hit in found.records} == {first.id, second.id}
    assert any("no such table" in problem for problem in found.problems)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("ALTER TABLE elsewhere RENAME TO states")
    found = await memory.recall("key")
    assert found.problems == ()
    assert all(hit.state for hit in found.records)
    await memory.close()


async def test_a_slow_embedder_is_not_asked_for_the_vectors_of_rivals() -> None:
    memory = memory_of()
    store = InMemoryStore(HashEmbedder())
    one = await note(memory, "a gull")
    vectors = dynamics_of(memory).vectors
    assert set(await vectors.of([one], store)) == {one.id}
    assert await vectors.cosines("gull", [], store) == {}
    vectors.drop([one.id])
    store.embedder = MiniLmEmbedder.__new__(MiniLmEmbedder)
    assert await vectors.of([one], store) == {}
    assert await vectors.cosines("gull", [one], store) == {}


# ---- Owners and processes ----


async def test_owners_over_one_store_and_file_have_dynamics_of_their_own(tmp_path: Path) -> None:
    clock, path = Calendar(), tmp_path / "d.sqlite3"
    ann = memory_of("ann", path=path, clock=clock)
    bob = memory_of(
        "bob", ann.store, path=path, clock=clock, scope=Scopes(own="bob", reads=("ann",))
    )
    one = await note(ann, "The key lies under the mat.")
    assert dynamics_of(bob).states.count() == 0
    clock.passes(20)
    await bob.recall("key")
    assert dynamics_of(bob).states.get([one.id])[one.id].uses == 1
    assert dynamics_of(ann).states.get([one.id])[one.id].uses == 0
    clock.passes(20)
    assert (await ann.recall("key")).records == ()
    assert len((await bob.recall("key")).records) == 1
    await ann.revoke(one.id, "Gone.")
    assert dynamics_of(bob).states.count() == 0
    await bob.close()
    await ann.close()


def _use(path: Path, times: int) -> None:
    async def recalls() -> None:
        clock = Calendar()
        memory = memory_of(path=path, clock=clock, settings=MemoryDynamicsSettings(links=Links()))
        one = await note(memory, "The key lies under the mat.")
        other = await note(memory, "The key hangs inside.")
        assert one.id != other.id
        for _ in range(times):
            clock.passes(1)
            await memory.recall("key")

    asyncio.run(recalls())


async def test_two_processes_on_one_file_lose_no_use(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite3"
    memory = memory_of(path=path)
    record = await note(memory, "The key lies under the mat.")
    before = dynamics_of(memory).states.get([record.id])[record.id].uses
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=_use, args=(path, 25)) for _ in range(2)]
    for one in processes:
        one.start()
    for one in processes:
        await asyncio.to_thread(one.join)
        assert one.exitcode == 0
    # each process said it once more, too
    assert dynamics_of(memory).states.get([record.id])[record.id].uses == before + 2 * 25 + 2
    await memory.close()


async def test_persons_of_one_memory_share_its_dynamics_and_see_their_own_records() -> None:
    clock = Calendar()
    memory = memory_of(clock=clock)
    one = memory.within("user:one")
    two = memory.within("user:two")
    await note(one, "The key lies under the mat.")
    assert (await two.recall("key")).records == ()
    assert len((await one.recall("key")).records) == 1
    assert one.dynamics is two.dynamics is memory.dynamics
    assert (await memory.reaching_all()).dynamics is memory.dynamics


# ---- Time, configuration, transfer ----


async def test_a_memory_comes_back_from_its_configuration_with_its_dynamics(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite3"
    settings = ALL.model_copy(update={"seed": 7})
    for given in (settings, "assistant"):
        memory = LongTermMemory(
            InMemoryStore(HashEmbedder()),
            scope="ann",
            dynamics=MemoryDynamics(given, path=path, owner="ann"),
        )
        text = LongTermMemoryConfig.of(memory).model_dump_json()
        again = LongTermMemoryConfig.model_validate_json(text).open()
        assert dynamics_of(again).settings == dynamics_of(memory).settings
        assert (dynamics_of(again).owner, dynamics_of(again).file.path) == ("ann", path)
        assert isinstance(dynamics_of(again).clock, SystemClock)
        await again.close()
        await memory.close()


def test_the_configuration_of_a_memory_without_dynamics_does_not_speak_of_them() -> None:
    memory = LongTermMemory(InMemoryStore(), scope="ann")
    assert "dynamics" not in LongTermMemoryConfig.of(memory).model_dump_json()
    dynamics = MemoryDynamics("assistant", appraise=lambda text: dynamics_of(memory).mood)
    with pytest.raises(ConfigurationError):
        dynamics.config()


async def test_imported_records_are_as_old_as_they_are_and_begin_to_fade_again(
    tmp_path: Path,
) -> None:
    clock = Calendar()
    memory, _, _ = await lived(clock)
    clock.passes(400)
    await sleep(memory)
    file = tmp_path / "export.jsonl"
    exported = await export_records(dynamics_of(memory).whole(memory.store), file)
    assert exported.records == 3
    other = memory_of(clock=clock)
    await import_records(other.store, file)
    (hit, *_) = (await other.recall("secret at the pier")).records
    assert hit.state is not None
    assert hit.state.age > 400
    assert hit.state.gist is None

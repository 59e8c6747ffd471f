"""What every store of states does, whatever it rests on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.awareness import (
    AwarenessState,
    Entity,
    InMemoryStateStore,
    StaleStateError,
    StateStore,
    StateStoreError,
    StoredState,
    WorldModel,
    change_stored,
)

AT = datetime(2026, 11, 24, 9, 30, tzinfo=UTC)
KEEP = 3
OpenStore = Callable[[], StateStore]


def state(step: int = 0, *names: str) -> AwarenessState:
    entities = tuple(Entity(name=name, type="topic", state={"said": 0.1}) for name in names)
    return AwarenessState(
        domain="conversation", step=step, at=AT, world=WorldModel(entities=entities)
    )


def one_more(before: AwarenessState | None) -> AwarenessState:
    return (before or state()).tick(AT)


async def test_what_is_saved_is_loaded_as_it_was(store: StateStore) -> None:
    saved = state(4, "Python", "naïve Müller 🦊", "a\nb\x00c\u2028")
    version = await store.save("alice", saved)
    loaded = await store.load("alice")
    assert loaded is not None
    assert (loaded.key, loaded.version, loaded.state) == ("alice", version, saved)
    assert loaded.state.model_dump_json() == saved.model_dump_json()


async def test_what_is_not_there_is_none(store: StateStore) -> None:
    assert await store.load("alice") is None
    assert await store.history("alice") == []
    assert await store.delete("alice") is False


async def test_keys_do_not_meet_even_where_they_differ_in_case_only(store: StateStore) -> None:
    keys = ("alice", "Alice", "alice/..", "al ice", "%", "ä", "'; DROP TABLE states; --")
    for step, key in enumerate(keys):
        await store.save(key, state(step), 0)
    for step, key in enumerate(keys):
        loaded = await store.load(key)
        assert loaded is not None
        assert loaded.state.step == step


@pytest.mark.parametrize("key", ["", "  ", "a\nb", "a\x00", "\ud800", "k" * 201])
async def test_what_cannot_be_a_key_is_refused(store: StateStore, key: str) -> None:
    with pytest.raises(ValueError, match="A key is a text of 1 to 200 characters"):
        await store.load(key)
    with pytest.raises(ValueError, match="A key is"):
        await store.save(key, state())


async def test_a_longest_key_is_held(store: StateStore) -> None:
    await store.save("ö" * 200, state(7))
    loaded = await store.load("ö" * 200)
    assert loaded is not None


async def test_history_is_bounded_and_newest_first(store: StateStore) -> None:
    versions = [await store.save("alice", state(step)) for step in range(5)]
    await store.save("bob", state(9))
    history = await store.history("alice")
    assert [one.version for one in history] == versions[:-4:-1]
    assert [one.state.step for one in history] == [4, 3, 2]
    assert versions == sorted(set(versions))
    assert [one.state.step for one in await store.history("alice", 2)] == [4, 3]


async def test_a_history_of_nothing_is_refused(store: StateStore) -> None:
    with pytest.raises(ValueError, match="limit is how many versions to give, at least 1, not 0"):
        await store.history("alice", 0)


async def test_a_save_on_an_older_version_is_refused_and_writes_nothing(store: StateStore) -> None:
    first = await store.save("alice", state(1), 0)
    second = await store.save("alice", state(2), first)
    with pytest.raises(StaleStateError, match="Load it again, repeat the change") as refused:
        await store.save("alice", state(3), first)
    assert (refused.value.expected, refused.value.found) == (first, second)
    assert [one.state.step for one in await store.history("alice")] == [2, 1]


async def test_a_save_that_expects_none_is_refused_where_there_is_one(store: StateStore) -> None:
    await store.save("alice", state(1))
    with pytest.raises(StaleStateError, match="none was expected"):
        await store.save("alice", state(2), 0)


async def test_a_save_on_what_was_deleted_is_refused(store: StateStore) -> None:
    version = await store.save("alice", state(1))
    assert await store.delete("alice") is True
    with pytest.raises(StaleStateError, match="none is stored"):
        await store.save("alice", state(2), version)


async def test_an_expected_version_below_zero_is_refused(store: StateStore) -> None:
    with pytest.raises(ValueError, match="expected_version is what was loaded, 0 for none"):
        await store.save("alice", state(), -1)


async def test_without_an_expected_version_the_last_one_counts(store: StateStore) -> None:
    await store.save("alice", state(1))
    await store.save("alice", state(2))
    loaded = await store.load("alice")
    assert loaded is not None
    assert loaded.state.step == 2


async def test_after_a_deletion_nothing_is_left_and_no_version_comes_again(
    store: StateStore,
) -> None:
    version = await store.save("alice", state(1))
    other = await store.save("bob", state(5))
    assert await store.delete("alice") is True
    assert await store.load("alice") is None
    assert await store.history("alice") == []
    assert await store.save("alice", state(1), 0) > version
    kept = await store.load("bob")
    assert kept is not None
    assert kept.version == other


async def test_a_store_that_is_opened_again_goes_on(open_store: OpenStore) -> None:
    version = await open_store().save("alice", state(1))
    again = open_store()
    loaded = await again.load("alice")
    assert loaded is not None
    assert loaded.version == version
    assert await again.save("alice", state(2), version) > version


async def test_of_two_writers_at_once_no_change_is_lost(open_store: OpenStore) -> None:
    writers = (open_store(), open_store())

    async def write(store: StateStore) -> None:
        for _ in range(15):
            await change_stored(store, "shared", one_more, tries=1000)

    await asyncio.gather(*(write(store) for store in writers))
    loaded = await writers[0].load("shared")
    assert loaded is not None
    assert loaded.state.step == 30


async def test_of_two_first_saves_at_once_one_is_refused(open_store: OpenStore) -> None:
    writers = (open_store(), open_store())
    saves = [store.save("alice", state(step), 0) for step, store in enumerate(writers)]
    results = await asyncio.gather(*saves, return_exceptions=True)
    assert sorted(type(one).__name__ for one in results) == ["StaleStateError", "int"]


async def test_readers_see_whole_states_while_others_write(open_store: OpenStore) -> None:
    writer, reader = open_store(), open_store()
    names = [f"topic {number}" for number in range(200)]
    await writer.save("alice", state(0, *names))

    async def write() -> None:
        for step in range(1, 15):
            await writer.save("alice", state(step, *names))

    async def read() -> list[int]:
        seen: list[int] = []
        while not seen or seen[-1] < 14:
            loaded = await reader.load("alice")
            assert loaded is not None
            assert len(loaded.state.world.entities) == 200
            seen.append(loaded.state.step)
            await asyncio.sleep(0)
        return seen

    _, seen = await asyncio.gather(write(), read())
    assert seen == sorted(seen)


async def test_a_closed_store_says_so(store: StateStore) -> None:
    await store.save("alice", state())
    await store.close()
    await store.close()
    with pytest.raises(StateStoreError, match="is closed; open a new one"):
        await store.load("alice")
    with pytest.raises(StateStoreError, match="is closed"):
        await store.save("alice", state())


async def test_a_change_is_given_up_when_others_are_always_faster() -> None:
    store = InMemoryStateStore()

    class Overtaken(InMemoryStateStore):
        async def load(self, key: str) -> StoredState | None:
            loaded = await store.load(key)
            await store.save(key, state())
            return loaded

        async def save(
            self, key: str, state: AwarenessState, expected_version: int | None = None
        ) -> int:
            return await store.save(key, state, expected_version)

    with pytest.raises(StateStoreError, match="changed by others 3 times in a row"):
        await change_stored(Overtaken(), "alice", one_more, tries=3)
    with pytest.raises(ValueError, match="tries is at least 1, not 0"):
        await change_stored(store, "alice", one_more, tries=0)


@given(
    st.lists(
        st.tuples(st.sampled_from(["save", "stale", "delete"]), st.sampled_from("ab")), max_size=20
    )
)
def test_whatever_is_done_the_newest_acknowledged_state_is_loaded(
    deeds: list[tuple[str, str]],
) -> None:
    asyncio.run(_newest_is_loaded(deeds))


async def _newest_is_loaded(deeds: list[tuple[str, str]]) -> None:
    store, expected = InMemoryStateStore(keep=KEEP), dict[str, list[int]]()
    for step, (deed, key) in enumerate(deeds):
        if deed == "save":
            await store.save(key, state(step))
            expected.setdefault(key, []).append(step)
        elif deed == "stale":
            with pytest.raises(StaleStateError):
                await store.save(key, state(step), 10_000)
        else:
            assert await store.delete(key) is (expected.pop(key, None) is not None)
    for key in "ab":
        kept = expected.get(key, [])[::-1][:KEEP]
        assert [one.state.step for one in await store.history(key)] == kept


@pytest.mark.parametrize("keep", [0, -1])
def test_a_store_keeps_at_least_one_version(keep: int) -> None:
    with pytest.raises(ValueError, match=f"at least 1, not {keep}"):
        InMemoryStateStore(keep=keep)

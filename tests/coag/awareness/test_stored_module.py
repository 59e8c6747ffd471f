"""A module whose state is stored: another process continues from it, and nothing is lost."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kits.happenings import answered, asked, executed, returned

from coag.awareness import (
    Awareness,
    AwarenessState,
    ConversationAdapter,
    InMemoryStateStore,
    SqliteStateStore,
    StateStoreError,
)
from coag.errors import AwarenessError
from coag.schema import Outcome, Percept, SteppingClock


class Failing(InMemoryStateStore):
    """A store that can be reached or not."""

    broken = True

    def _read(self, key: str, limit: int) -> list[tuple[int, str]]:
        if self.broken:
            raise StateStoreError("out of reach")
        return super()._read(key, limit)


def awareness(store: Any, **more: Any) -> Awareness:
    return Awareness(store=store, clock=SteppingClock(), **more)


async def lived(module: Awareness, *events: Percept | Outcome) -> Awareness:
    for event in events:
        await module.observe(event)
    return module


async def stored(store: Any, key: str = "awareness") -> AwarenessState | None:
    found = await store.load(key)
    return found.state if found else None


async def test_another_process_continues_from_what_was_stored(tmp_path: Path) -> None:
    first = SqliteStateStore(tmp_path / "states.sqlite")
    one = await lived(awareness(first), asked("Find it."), executed("look"))
    assert await stored(first) == one.state
    await first.close()
    again = SqliteStateStore(tmp_path / "states.sqlite")
    other = await lived(awareness(again), asked("Cook pasta."))
    assert [goal.description for goal in other.state.goals.goals] == ["Find it.", "Cook pasta."]
    assert other.state.step == one.state.step + 1
    assert await stored(again) == other.state
    await again.close()


async def test_a_state_can_be_restored_before_the_run() -> None:
    store = InMemoryStateStore()
    one = await lived(awareness(store, key="clerk"), asked("Find it."))
    other = awareness(store, key="clerk")
    assert other.save_state()["restored"] is False
    assert await other.restore() is True
    assert other.state == one.state
    assert await other.restore() is False
    assert "restored" not in other.save_state()
    assert await awareness(store, key="nobody").restore() is False


async def test_what_was_restored_is_data() -> None:
    store = InMemoryStateStore()
    await lived(awareness(store), asked("Find it."))
    module = awareness(store)
    await module.restore()
    assert module.save_state()["standing"]["trust"] == "untrusted"


async def test_a_replayed_run_reads_the_state_of_its_time_and_replaces_no_later_one() -> None:
    store, events = InMemoryStateStore(keep=50), [asked("Find it."), executed("look"), answered()]
    before = await lived(awareness(store), asked("Cook pasta."))
    later = timedelta(days=1)
    run = [one.model_copy(update={"at": one.at + later}) for one in events]
    first = await lived(awareness(store), *run)
    replayed = await lived(awareness(store), *run)
    assert before.state.at < first.state.at
    assert replayed.state == first.state
    resumed = awareness(store)
    resumed.load_state(before.save_state())
    await lived(resumed, executed("look"))
    assert await stored(store) == first.state


async def test_a_store_that_fails_costs_no_event_and_gets_the_state_once_it_is_back() -> None:
    store = Failing()
    module = awareness(store)
    for event in (asked("Find it."), returned("look", "a shelf")):
        with pytest.raises(StateStoreError, match="out of reach"):
            await module.observe(event)
    assert module.state.step == 2
    store.broken = False
    await lived(module, executed("look"))
    assert await stored(store) is None  # what is stored was never read, so nothing is replaced
    await lived(module, asked("Hurry.", sets_goal=False))
    assert await stored(store) == module.state


async def test_a_reset_begins_anew_and_replaces_what_is_stored() -> None:
    store = InMemoryStateStore()
    module = await lived(awareness(store), asked("Find it."))
    module.reset_state()
    event = asked("Cook pasta.")
    await lived(module, event.model_copy(update={"at": event.at + timedelta(days=1)}))
    kept = await stored(store)
    assert kept is not None
    assert [goal.description for goal in kept.goals.goals] == ["Cook pasta."]


async def test_a_state_of_another_domain_is_refused_and_never_replaced() -> None:
    store = InMemoryStateStore()
    one = await lived(awareness(store), asked("Find it."))
    talk = awareness(store, adapter=ConversationAdapter())
    for _ in range(2):
        with pytest.raises(AwarenessError, match="domain 'tools'"):
            await lived(talk, asked("Teach me."))
    assert await stored(store) == one.state


async def test_the_store_is_left_alone_where_people_are_kept_apart() -> None:
    store = InMemoryStateStore()
    person = asked("Go on.").model_copy(update={"memory_scope": "user:ann", "state_patch": {}})
    await lived(awareness(store), person, executed("look"))
    assert await stored(store) is None

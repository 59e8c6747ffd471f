from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from coag.errors import RecordStoreError
from coag.memory import LongTermMemory, ProceduralMemory, RuleChange, rules_of
from coag.schema import Fact, MemoryKind, Provenance, Record, SteppingClock, Trust
from coag.store import ChromaStore, HashEmbedder, InMemoryStore

SEMANTIC = MemoryKind.SEMANTIC


def known_from(source: str, trust: Trust = Trust.USER) -> Provenance:
    return Provenance(
        run="run", activity="main", cycle=2, source=source, source_kind="agent", trust=trust
    )


class Stumbling(InMemoryStore):
    """A store that breaks off right before one of its removals."""

    left = 1_000

    async def delete(self, ids: Sequence[str]) -> list[str]:
        if self.left == 0:
            raise RecordStoreError("The store is gone.")
        self.left -= 1
        return await super().delete(ids)


@pytest.fixture(params=["in memory", "chroma on disk"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LongTermMemory]:
    on_disk = request.param == "chroma on disk"
    store = (
        await ChromaStore.open(tmp_path / "store", HashEmbedder())
        if on_disk
        else InMemoryStore(HashEmbedder())
    )
    memory = LongTermMemory(store, scope="alice", clock=SteppingClock())
    yield memory
    await memory.close()


async def note(
    memory: LongTermMemory, text: str, *sources: Record, trust: Trust = Trust.USER
) -> Record:
    told = await memory.remember(
        SEMANTIC,
        text,
        provenance=known_from("alice", trust),
        derived_from=[source.id for source in sources],
    )
    return told.record


async def state_of_door(memory: LongTermMemory, value: str, trust: Trust = Trust.USER) -> Record:
    told = await memory.remember(
        SEMANTIC,
        f"the door is {value}",
        provenance=known_from("alice", trust),
        fact=Fact(subject="door", attribute="state", value=value),
    )
    return told.record


def with_rule(procedures: ProceduralMemory, rule: str, *origins: str) -> None:
    procedures.change_rule(
        "reasoning",
        RuleChange(operation="add", rule=rule),
        author="alice",
        reason=f"for {rule}",
        origins=origins,
    )


def standing_rules(procedures: ProceduralMemory) -> tuple[str, ...]:
    return rules_of(procedures.get("reasoning").text)


async def test_poison_goes_with_all_that_was_concluded_from_it(memory: LongTermMemory) -> None:
    poison = await note(memory, "visitors may have the keys", trust=Trust.UNTRUSTED)
    child = await note(memory, "the tall man is a visitor", poison)
    grandchild = await note(memory, "give him everything", child)
    sound = await note(memory, "the keys hang in the hall")
    procedures = ProceduralMemory()
    with_rule(procedures, "Greet politely.")
    with_rule(procedures, "Hand out what guests ask for.", child.id)
    with_rule(procedures, "Close doors behind you.", sound.id)

    done = await memory.revoke(poison.id, "It was planted.", procedures=procedures)

    assert set(done.records) == {poison.id, child.id, grandchild.id}
    assert await memory.store.get([poison.id, child.id, grandchild.id]) == []
    recall = await memory.recall("visitor keys everything", k=10, min_score=0.0)
    assert [hit.record.id for hit in recall.records] == [sound.id]
    assert standing_rules(procedures) == ("Greet politely.", "Close doors behind you.")
    head, rolled_back = done.written(cycle=4)
    assert (head.what, head.id, head.cycle) == ("revoked", poison.id, 4)
    assert set(head.content["records"]) == set(done.records)
    assert head.content["procedures"] == {"reasoning": 5}
    assert (rolled_back.what, rolled_back.id) == ("procedure", "reasoning@5")


async def test_what_the_revoked_record_superseded_holds_again(memory: LongTermMemory) -> None:
    first = await state_of_door(memory, "open")
    second = await state_of_door(memory, "shut")
    third = await state_of_door(memory, "ajar")

    done = await memory.revoke(second.id, "wrong")
    assert done.restored == ()
    (ended,) = await memory.store.get([first.id])
    assert ended.superseded_by == third.id
    assert ended.fact is not None
    assert ended.fact.valid_until == third.created_at

    done = await memory.revoke(third.id, "wrong too")
    assert done.restored == (first.id,)
    (held,) = await memory.store.get([first.id])
    assert held == first
    assert [one.id for one in await memory.history(first.id)] == [first.id]


async def test_contradiction_with_a_revoked_record_is_cleared(memory: LongTermMemory) -> None:
    sound = await state_of_door(memory, "open")
    rumour = await state_of_door(memory, "shut", Trust.UNTRUSTED)

    done = await memory.revoke(rumour.id, "a rumour")

    assert done.cleared == (sound.id,)
    assert await memory.store.get([sound.id]) == [sound]


async def test_restored_fact_and_what_was_said_since_contradict_each_other(
    memory: LongTermMemory,
) -> None:
    first = await state_of_door(memory, "open")
    second = await state_of_door(memory, "shut")
    rumour = await state_of_door(memory, "ajar", Trust.UNTRUSTED)

    await memory.revoke(second.id, "wrong")

    held = await memory.store.get([first.id, rumour.id])
    assert [one.lineage.contradicts for one in held] == [(rumour.id,), (first.id,)]


@pytest.mark.parametrize("left", range(3))
async def test_revocation_that_was_broken_off_is_completed_by_doing_it_again(left: int) -> None:
    store = Stumbling(HashEmbedder())
    memory = LongTermMemory(store, scope="alice", clock=SteppingClock())
    before = await note(memory, "the lamp is out")
    told = await memory.remember(
        SEMANTIC, "the lamp is lit", provenance=known_from("alice"), supersedes=before.id
    )
    child = await note(memory, "somebody is at home", told.record)
    grandchild = await note(memory, "the house is inhabited", child)
    procedures = ProceduralMemory()
    with_rule(procedures, "Knock first.", grandchild.id)
    store.left = left
    with pytest.raises(RecordStoreError):
        await memory.revoke(told.record.id, "wrong", procedures=procedures)

    store.left = 1_000
    await memory.revoke(told.record.id, "wrong", procedures=procedures)
    again = await memory.revoke(told.record.id, "wrong", procedures=procedures)

    assert await memory.store.get([told.record.id, child.id, grandchild.id]) == []
    assert await memory.store.get([before.id]) == [before]
    assert standing_rules(procedures) == ()
    assert (again.records, again.restored, again.procedures) == ((), (), ())
    assert len(procedures.versions("reasoning")) == 3


async def test_other_scopes_record_is_not_revoked_nor_forgotten(memory: LongTermMemory) -> None:
    secret = await note(LongTermMemory(memory.store, scope="bob"), "bob's secret")

    with pytest.raises(ValueError, match="another scope, not of 'alice'"):
        await memory.revoke(secret.id, "curious")
    with pytest.raises(ValueError, match="another scope, not of 'alice'"):
        await memory.forget_record(secret.id)
    with pytest.raises(ValueError, match="reason is empty"):
        await memory.revoke(secret.id, " ")
    assert await memory.history(secret.id) == ()


async def test_forgotten_record_goes_alone_and_its_chain_closes(memory: LongTermMemory) -> None:
    records = [await state_of_door(memory, value) for value in ("open", "shut", "ajar")]
    child = await note(memory, "one can walk through", records[1])

    assert await memory.forget_record(records[1].id)
    assert not await memory.forget_record(records[1].id)

    chain = await memory.history(records[2].id)
    assert [one.id for one in chain] == [records[0].id, records[2].id]
    assert chain[0].superseded_by == records[2].id
    assert await memory.store.get([child.id]) == [child]


def test_rule_that_was_changed_since_is_undone_with_all_that_came_after() -> None:
    procedures = ProceduralMemory()
    with_rule(procedures, "Greet politely.")
    with_rule(procedures, "Hand out keys.", "poison")
    procedures.change_rule(
        "reasoning",
        RuleChange(operation="replace", number=2, rule="Hand out keys to every guest."),
        author="alice",
        reason="clearer",
    )

    undone = procedures.revoke({"poison"}, reason="planted")

    ((name, version),) = undone.versions
    assert (name, version.undoes) == ("reasoning", (3, 4))
    assert standing_rules(procedures) == ("Greet politely.",)


def test_rule_that_a_revoked_change_removed_comes_back() -> None:
    procedures = ProceduralMemory()
    with_rule(procedures, "Keep the keys.")
    procedures.change_rule(
        "reasoning",
        RuleChange(operation="remove", number=1),
        author="alice",
        reason="not needed",
        origins=["poison"],
    )
    assert standing_rules(procedures) == ()

    procedures.revoke({"poison"}, reason="planted")

    assert standing_rules(procedures) == ("Keep the keys.",)


def test_version_that_was_rolled_back_before_is_not_undone_again() -> None:
    procedures = ProceduralMemory()
    with_rule(procedures, "Hand out keys.", "poison")
    procedures.rollback("reasoning", 1, author="dev", reason="no")
    with_rule(procedures, "Greet politely.")

    assert procedures.revoke({"poison"}, reason="planted").versions == ()
    procedures.rollback("reasoning", 2, author="dev", reason="yes")
    assert [name for name, _ in procedures.revoke({"poison"}, reason="planted").versions] == [
        "reasoning"
    ]
    assert standing_rules(procedures) == ()


def test_file_of_procedures_from_before_still_loads(tmp_path: Path) -> None:
    path = tmp_path / "procedures.json"
    procedures = ProceduralMemory(path=path)
    with_rule(procedures, "Greet politely.")
    text = path.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if '"origins"' not in line]
    old = "\n".join(line for line in lines if '"undoes"' not in line)
    # What stood before the two new fields ends with their comma now.
    path.write_text(old.replace('",\n   }', '"\n   }'), encoding="utf-8")

    assert standing_rules(ProceduralMemory(path=path)) == ("Greet politely.",)


async def test_a_unique_short_id_is_enough_and_what_is_no_id_is_refused(
    memory: LongTermMemory,
) -> None:
    first, second = await note(memory, "The key is red."), await note(memory, "Cats sleep a lot.")
    assert await memory.history(first.id[:8]) == (first,)
    assert (await memory.revoke(first.id[:8], "wrong")).records == (first.id,)
    assert await memory.forget_record(second.id[:12])
    assert (await memory.revoke(first.id, "again")).records == ()
    for name in ("nonsense", first.id[:7], first.id + "0", first.id[:8]):
        with pytest.raises(ValueError, match="32"):
            await memory.revoke(name, "wrong")
        with pytest.raises(ValueError, match="32"):
            await memory.forget_record(name)
        with pytest.raises(ValueError, match="32"):
            await memory.history(name)


async def test_a_kind_that_is_none_is_refused_and_the_two_are_named(memory: LongTermMemory) -> None:
    wrong: Any = "fact"
    with pytest.raises(ValueError, match=r"MemoryKind.EPISODIC or MemoryKind.SEMANTIC"):
        await memory.remember(wrong, "The key is red.", provenance=known_from("alice"))

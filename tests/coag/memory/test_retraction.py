"""Records, and all that one source stated, taken back with what was concluded from them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.statements import (
    ANN,
    DEVELOPER,
    UNTRUSTED,
    WEB,
    memory_over,
    origin,
    stored,
    tell,
    texts,
)

from coag.errors import RecordStoreError
from coag.memory import (
    LongTermMemory,
    ProceduralMemory,
    Revocation,
    RuleChange,
    retract_source,
    revoke_again,
    rules_of,
    would_revoke,
)
from coag.schema import Record, SteppingClock
from coag.store import ChromaStore, HashEmbedder, InMemoryStore, WrappedStore

BY = {"ann": ANN, "ben": origin("ben"), "web": WEB, "dev": origin("dev", DEVELOPER)}


@pytest.fixture(params=["in memory", "chroma on disk"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LongTermMemory]:
    on_disk = request.param == "chroma on disk"
    store = await ChromaStore.open(tmp_path / "store", HashEmbedder()) if on_disk else None
    memory = memory_over(store)
    yield memory
    await memory.close()


async def note(
    memory: LongTermMemory, text: str, *rests_on: Record, by: str = "ann", value: str = ""
) -> Record:
    return (await tell(memory, text, BY[by], value, *rests_on)).record


async def doors(memory: LongTermMemory, *values: str) -> list[Record]:
    return [await note(memory, f"the door is {value}", value=value) for value in values]


def with_rule(procedures: ProceduralMemory, rule: str, *origins: str, **change: Any) -> None:
    wanted = RuleChange.model_validate({"operation": "add", "rule": rule, **change})
    procedures.change_rule(
        "reasoning", wanted, author="alice", reason=f"for {rule}", origins=origins
    )


def rules(procedures: ProceduralMemory) -> tuple[str, ...]:
    return rules_of(procedures.get("reasoning").text)


# ---- One record ----


async def test_poison_goes_with_all_that_was_concluded_from_it(memory: LongTermMemory) -> None:
    poison = await note(memory, "visitors may have the keys", by="web")
    child = await note(memory, "the tall man is a visitor", poison)
    grandchild = await note(memory, "give him everything", child)
    sound = await note(memory, "the keys hang in the hall")
    procedures = ProceduralMemory()
    with_rule(procedures, "Greet politely.")
    with_rule(procedures, "Hand out what guests ask for.", child.id)
    with_rule(procedures, "Close doors behind you.", sound.id)
    done = await memory.revoke(poison.id, "It was planted.", procedures=procedures)
    assert set(done.records) == {poison.id, child.id, grandchild.id}
    assert (await stored(memory)).keys() == {sound.id}
    assert await texts(memory, "visitor keys everything", min_score=0.0) == [sound.text]
    assert rules(procedures) == ("Greet politely.", "Close doors behind you.")
    head, rolled_back = done.written(cycle=4)
    assert (head.what, head.id, head.cycle) == ("revoked", poison.id, 4)
    assert set(head.content["records"]) == set(done.records)
    assert head.content["procedures"] == {"reasoning": 5}
    assert (rolled_back.what, rolled_back.id) == ("procedure", "reasoning@5")


async def test_what_the_revoked_record_superseded_holds_again(memory: LongTermMemory) -> None:
    first, second, third = await doors(memory, "open", "shut", "ajar")
    assert (await memory.revoke(second.id, "wrong")).restored == ()
    (ended,) = await memory.store.get([first.id])
    assert ended.superseded_by == third.id
    assert ended.fact is not None
    assert ended.fact.valid_until == third.created_at
    assert (await memory.revoke(third.id, "wrong too")).restored == (first.id,)
    assert await stored(memory) == {first.id: first}
    assert await memory.history(first.id) == (first,)


async def test_contradictions_are_cleared_and_marked_as_records_come_and_go(
    memory: LongTermMemory,
) -> None:
    first, second = await doors(memory, "open", "shut")
    rumour = await note(memory, "the door is ajar", by="web", value="ajar")
    await memory.revoke(second.id, "wrong")
    held = await stored(memory)
    assert held[first.id].lineage.contradicts == (rumour.id,)
    assert held[rumour.id].lineage.contradicts == (first.id,)
    assert (await memory.revoke(rumour.id, "a rumour")).cleared == (first.id,)
    assert await stored(memory) == {first.id: first}


async def test_forgotten_record_goes_alone_and_its_chain_closes(memory: LongTermMemory) -> None:
    first, second, third = await doors(memory, "open", "shut", "ajar")
    child = await note(memory, "one can walk through", second)
    assert await memory.forget_record(second.id)
    assert not await memory.forget_record(second.id)
    chain = await memory.history(third.id)
    assert [one.id for one in chain] == [first.id, third.id]
    assert chain[0].superseded_by == third.id
    assert await memory.store.get([child.id]) == [child]


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


async def test_other_scopes_record_is_not_revoked_nor_forgotten() -> None:
    memory = memory_over()
    secret = await note(memory_over(memory.store, "bob"), "bob's secret")
    with pytest.raises(ValueError, match="another scope, not of 'alice'"):
        await memory.revoke(secret.id, "curious")
    with pytest.raises(ValueError, match="another scope, not of 'alice'"):
        await memory.forget_record(secret.id)
    with pytest.raises(ValueError, match="reason is empty"):
        await memory.revoke(secret.id, " ")
    assert await memory.history(secret.id) == ()


# ---- Rules of procedures that depend on a revoked record ----


def test_rules_that_a_revoked_change_brought_go_with_all_since_and_those_it_removed_return() -> (
    None
):
    procedures = ProceduralMemory()
    with_rule(procedures, "Greet politely.")
    with_rule(procedures, "Hand out keys.", "poison")
    with_rule(procedures, "Hand out keys to every guest.", operation="replace", number=2)
    ((name, version),) = procedures.revoke({"poison"}, reason="planted").versions
    assert (name, version.undoes) == ("reasoning", (3, 4))
    assert rules(procedures) == ("Greet politely.",)
    with_rule(procedures, "", "other poison", operation="remove", number=1)
    assert rules(procedures) == ()
    procedures.revoke({"other poison"}, reason="planted")
    assert rules(procedures) == ("Greet politely.",)


def test_version_that_was_rolled_back_before_is_not_undone_again() -> None:
    procedures = ProceduralMemory()
    with_rule(procedures, "Hand out keys.", "poison")
    procedures.rollback("reasoning", 1, author="dev", reason="no")
    with_rule(procedures, "Greet politely.")
    assert procedures.revoke({"poison"}, reason="planted").versions == ()
    procedures.rollback("reasoning", 2, author="dev", reason="yes")
    ((name, _),) = procedures.revoke({"poison"}, reason="planted").versions
    assert (name, rules(procedures)) == ("reasoning", ())


# ---- What one source stated ----


async def test_all_that_a_source_said_goes_but_what_others_said_too() -> None:
    memory = memory_over()
    shared = await note(memory, "The key is under the mat.", by="web")
    await note(memory, "The key is under the mat.")
    drawn = await note(memory, "So it is outside.", shared, by="dev")
    sound = await note(memory, "The door is open.", by="web", value="open")
    alone = await note(memory, "The door is shut.", value="shut")
    rest = await note(memory, "One must ring.", alone)
    other = await note(memory, "The bell is loud.", by="ben")
    done = await retract_source(memory, None, "ann", "She meant another house.")
    assert (done.record_id, done.source) == ("", "ann")
    assert set(done.records) == {alone.id, rest.id}
    assert set(done.lowered) == {shared.id, drawn.id}
    assert done.restored == (sound.id,)
    left = await stored(memory)
    assert left.keys() == {shared.id, drawn.id, sound.id, other.id}
    assert {left[one].provenance.trust for one in done.lowered} == {UNTRUSTED}
    (line,) = done.written()
    assert (line.what, line.id, line.content["source"]) == ("revoked", "", "ann")
    assert line.content["lowered"] == list(done.lowered)
    with pytest.raises(ValueError, match="Nothing in 'alice' stems from 'ann'"):
        await retract_source(memory, None, "ann", "Again.")


async def test_a_users_statement_of_a_conclusion_stays_where_another_source_goes() -> None:
    memory = memory_over()
    ground = await note(memory, "The page says so.", by="web")
    drawn = await note(memory, "It is so.", ground, by="web")
    for who in ("ann", "ben"):
        await note(memory, "It is so.", by=who)
    done = await retract_source(memory, drawn.id, "ben", "He did not look.")
    assert done.lowered == (drawn.id,)
    (held,) = await memory.store.get([drawn.id])
    assert held.provenance == ANN


async def test_a_dry_run_names_a_record_or_a_source() -> None:
    with pytest.raises(ValueError, match="Name a record, or the source"):
        await would_revoke(memory_over(), None)


SAID = st.tuples(
    st.sampled_from(("fact", "note", "conclusion")),
    st.sampled_from(tuple(BY)),
    st.integers(0, 2),
    st.lists(st.integers(0, 9), max_size=2),
)
Statements = list[tuple[str, str, int, list[int]]]


async def filled(statements: Statements) -> LongTermMemory:
    memory, known = memory_over(InMemoryStore(HashEmbedder(16)), ranking=None), list[Record]()
    for what, source, number, on in statements:
        value = f"v{number}" if what == "fact" else ""
        ground = [known[one] for one in on if one < len(known)] if what == "conclusion" else []
        known.append(await note(memory, f"{what} {number}", *ground, by=source, value=value))
    return memory


def essence(done: Revocation) -> Revocation:
    """What it took back, whenever and why."""
    names = ("records", "restored", "lowered", "cleared")
    unordered = {name: tuple(sorted(getattr(done, name))) for name in names}
    return replace(done, reason="", at=SteppingClock().now(), **unordered)


def sources_of(record: Record) -> set[str]:
    return {one.source for one in (record.provenance, *record.lineage.also_from)}


@given(
    statements=st.lists(SAID, min_size=1, max_size=8),
    source=st.sampled_from(tuple(BY)),
    of_one=st.booleans(),
    pick=st.integers(0, 7),
)
async def test_what_a_dry_run_says_is_what_a_retraction_does_and_nothing_of_the_source_is_left(
    statements: Statements, source: str, of_one: bool, pick: int
) -> None:
    memory = await filled(statements)
    before = await stored(memory)
    name = sorted(before)[pick % len(before)] if of_one else None
    mine = {n for n, one in before.items() if name in (None, n) and source in sources_of(one)}
    if not mine:
        with pytest.raises(ValueError, match="stems from"):
            await would_revoke(memory, name, source=source)
        return

    plan, changed = await would_revoke(memory, name, source=source)

    assert await stored(memory) == before
    done = await retract_source(memory, name, source, "A test.")
    after = await stored(memory)
    assert essence(done) == essence(plan)
    assert after.keys() == before.keys() - set(done.records)
    planned = {one.id: one for one in changed if one != before[one.id]}
    assert {name: one for name, one in after.items() if one != before[name]} == planned
    for one in after.values():
        assert one.id not in mine or source not in sources_of(one)
        assert one.superseded_by is None or one.superseded_by in after
    await revoke_again(memory, done.written()[0])
    assert await stored(memory) == after


# ---- Interrupted retractions ----


class Failing(WrappedStore):
    """A store that fails after so many changes and removals."""

    left = 1_000

    async def update(self, records: Any) -> list[Record]:
        self._count()
        return await self.store.update(records)

    async def delete(self, ids: Any) -> list[str]:
        self._count()
        return await self.store.delete(ids)

    def _count(self) -> None:
        if self.left == 0:
            raise RecordStoreError("The disk is full.")
        self.left -= 1


@pytest.mark.parametrize("left", range(4))
async def test_revocation_that_was_interrupted_is_completed_by_doing_it_again(left: int) -> None:
    store = Failing(InMemoryStore(HashEmbedder()))
    memory, procedures = memory_over(store), ProceduralMemory()
    before = await note(memory, "the lamp is out")
    lit = (await tell(memory, "the lamp is lit", supersedes=before.id)).record
    child = await note(memory, "somebody is at home", lit)
    grandchild = await note(memory, "the house is inhabited", child)
    with_rule(procedures, "Knock first.", grandchild.id)
    store.left = left
    with pytest.raises(RecordStoreError):
        await memory.revoke(lit.id, "wrong", procedures=procedures)
    store.left = 1_000
    await memory.revoke(lit.id, "wrong", procedures=procedures)
    again = await memory.revoke(lit.id, "wrong", procedures=procedures)
    assert await stored(memory) == {before.id: before}
    assert rules(procedures) == ()
    assert (again.records, again.restored, again.procedures) == ((), (), ())
    assert len(procedures.versions("reasoning")) == 3


@pytest.mark.parametrize("left", range(4))
async def test_source_whose_retraction_was_interrupted_is_gone_after_another(left: int) -> None:
    store = Failing(InMemoryStore(HashEmbedder(16)))
    memory = memory_over(store)
    for by in ("web", "ann"):
        shared = await note(memory, "The key is under the mat.", by=by)
    sound = await note(memory, "The door is open.", by="web", value="open")
    alone = await note(memory, "The door is shut.", value="shut")
    await note(memory, "One must ring.", alone, by="ben")
    store.left = left
    with pytest.raises(RecordStoreError, match="disk is full"):
        await retract_source(memory, None, "ann", "She meant another house.")
    store.left = 1_000
    await retract_source(memory, None, "ann", "She meant another house.")
    left_over = await stored(memory)
    assert left_over.keys() == {shared.id, sound.id}
    assert {one.provenance.trust for one in left_over.values()} == {UNTRUSTED}
    assert left_over[sound.id].superseded_by is None

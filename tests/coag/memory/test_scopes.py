"""Agents, users and teams: what is whose never leaks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.statements import EPISODIC, ROBBIE, SEMANTIC, memory_over, origin, tell, texts

from coag.errors import RecordStoreError
from coag.memory import (
    SEMANTIC_ACTION,
    LongTermMemory,
    LongTermMemoryConfig,
    MemoryActions,
    MemorySituation,
    ProceduralMemory,
    Scopes,
    ToRemember,
    agent_scope,
    team_scope,
    user_scope,
)
from coag.schema import (
    ActionCall,
    Fact,
    RecalledRecord,
    Record,
    Trust,
)
from coag.store import HashEmbedder, InMemoryStore, Ranking

ANN, BLUE = user_scope("ann"), team_scope("blue")
SCOPES = Scopes(own="robbie", reads=(BLUE,), writes=(ANN,))


@pytest.fixture
async def store() -> AsyncIterator[InMemoryStore]:
    store = InMemoryStore(HashEmbedder())
    yield store
    await store.close()


async def note(
    memory: LongTermMemory, text: str, *, scope: str | None = None, supersedes: str | None = None
) -> Record:
    return (await tell(memory, text, ROBBIE, scope=scope, supersedes=supersedes)).record


def test_scopes_of_agents_users_and_teams_are_distinct() -> None:
    assert agent_scope("robbie") == "robbie"
    assert (ANN, BLUE) == ("user:ann", "team:blue")
    with pytest.raises(ValueError, match="scope of a user or team"):
        agent_scope("user:ann")
    with pytest.raises(ValueError, match="user's id is empty"):
        user_scope(" ")


async def test_own_and_named_scopes_are_recalled_and_no_other(store: InMemoryStore) -> None:
    await note(memory_over(store, "robbie"), "robbie likes tea")
    await note(memory_over(store, ANN), "ann likes tea")
    await note(memory_over(store, BLUE), "the team likes tea")
    await note(memory_over(store, user_scope("bob")), "bob likes tea")
    memory = memory_over(store, SCOPES)
    assert sorted(await texts(memory, "likes tea")) == [
        "ann likes tea",
        "robbie likes tea",
        "the team likes tea",
    ]
    assert await texts(memory_over(store, "robbie"), "likes tea") == ["robbie likes tea"]


async def test_memory_writes_its_own_scope_and_those_that_it_names(store: InMemoryStore) -> None:
    memory = memory_over(store, SCOPES)
    assert (await note(memory, "tea is up")).scope == "robbie"
    assert (await note(memory, "ann sleeps late", scope=ANN)).scope == ANN
    with pytest.raises(ValueError, match=r"'team:blue' may not be written here, only: 'robbie'"):
        await note(memory, "all is well", scope=BLUE)
    many = [ToRemember(kind=SEMANTIC, text="ann is in", provenance=ROBBIE)]
    written = [one async for some in memory.remember_all(many, scope=ANN) for one in some]
    assert [one.record.scope for one in written] == [ANN]


async def test_record_of_a_scope_that_is_only_read_is_found_but_not_changed(
    store: InMemoryStore,
) -> None:
    theirs = await note(memory_over(store, BLUE), "the gate opens at nine")
    memory = memory_over(store, SCOPES)
    assert await memory.find(SEMANTIC, theirs.id[:8]) == theirs
    assert await memory.history(theirs.id) == (theirs,)
    with pytest.raises(ValueError, match="another scope, not of 'robbie' or 'user:ann'"):
        await memory.revoke(theirs.id, "a guess")
    with pytest.raises(ValueError, match="another scope"):
        await memory.forget_record(theirs.id)
    with pytest.raises(ValueError, match="may not be written"):
        await memory.forget(BLUE)
    with pytest.raises(RecordStoreError, match=r"no record .* in scope 'robbie'"):
        await note(memory, "the gate opens at ten", supersedes=theirs.id)
    assert await store.get([theirs.id]) == [theirs]


async def test_revocation_reaches_what_was_concluded_in_every_scope_that_is_written(
    store: InMemoryStore,
) -> None:
    memory = memory_over(store, SCOPES)
    poison = await note(memory, "the key hangs outside", scope=ANN)
    drawn = await tell(memory, "fetch it there", ROBBIE, "", poison)
    gone = await memory.revoke(poison.id, "a joke")
    assert set(gone.records) == {poison.id, drawn.record.id}


async def test_reader_takes_back_its_own_conclusions_once_the_team_revoked_theirs(
    store: InMemoryStore,
) -> None:
    team, memory = memory_over(store, BLUE), memory_over(store, SCOPES)
    poison = await note(team, "the key hangs outside")
    drawn = await tell(memory, "fetch it there", ROBBIE, "", poison)
    await team.revoke(poison.id, "a joke")
    assert await store.get([drawn.record.id]) == [drawn.record]
    gone = await memory.revoke(poison.id, "a joke")
    assert gone.records == (drawn.record.id,)


async def test_nothing_is_derived_from_a_record_that_may_not_be_read(store: InMemoryStore) -> None:
    secret = await note(memory_over(store, user_scope("bob")), "bob's secret")
    with pytest.raises(ValueError, match="Nothing can be derived"):
        await tell(memory_over(store, SCOPES), "so be it", ROBBIE, "", secret)


class ForgedSource:
    """A further memory whose record names somebody's secret as what it contradicts."""

    name = "forger"

    def __init__(self, secret: Record) -> None:
        lineage = secret.lineage.model_copy(update={"contradicts": (secret.id,)})
        forged = secret.model_copy(update={"id": "0" * 32, "text": "bait", "lineage": lineage})
        self._hit = RecalledRecord(record=forged, score=1.0)

    async def recall(self, query: str, k: int) -> list[RecalledRecord]:
        return [self._hit]


async def test_forged_contradiction_brings_no_record_of_another_scope(
    store: InMemoryStore,
) -> None:
    secret = await note(memory_over(store, "bob"), "bob's secret")
    memory = LongTermMemory(store, scope=SCOPES, sources=[ForgedSource(secret)])
    recall = await memory.recall("bait")
    assert [hit.record.text for hit in recall.records] == ["bait"]


@dataclass(frozen=True)
class Call:
    """One call of one of several memories over one store."""

    who: int
    what: str
    word: int
    into: int
    target: int


VIEWS = (
    Scopes(own="a"),
    Scopes(own="b", reads=("t",)),
    Scopes(own="t"),
    Scopes(own="c", writes=("u",), reads=("t",)),
)
calls = st.builds(
    Call,
    who=st.integers(0, len(VIEWS) - 1),
    what=st.sampled_from(("note", "fact", "fact", "bulk", "revoke", "forget", "derive", "replace")),
    word=st.integers(0, 2),
    into=st.integers(0, 1),
    target=st.integers(0, 9),
)


async def done(memory: LongTermMemory, made: Call, known: list[str]) -> None:
    scope = memory.scopes.writable[made.into % len(memory.scopes.writable)]
    value = ("red", "blue", "green")[made.word]
    fact = Fact(subject="door", attribute="colour", value=value)
    target = known[made.target % len(known)] if known else "none"
    text = f"the door is {value}"
    by = origin("robbie", (Trust.USER, Trust.UNTRUSTED)[made.target % 2], "agent")
    match made.what:
        case "note":
            await memory.remember(EPISODIC, text, provenance=ROBBIE, scope=scope)
        case "fact":
            await memory.remember(SEMANTIC, text, provenance=by, fact=fact, scope=scope)
        case "bulk":
            many = [ToRemember(kind=SEMANTIC, text=text, provenance=by, fact=fact)]
            _ = [some async for some in memory.remember_all(many, scope=scope)]
        case "revoke":
            await memory.revoke(target, "a test")
        case "forget":
            await memory.forget_record(target)
        case "derive":
            await memory.remember(
                SEMANTIC, f"so {text}", provenance=ROBBIE, derived_from=[target], scope=scope
            )
        case _:
            await memory.remember(
                SEMANTIC, f"now {text}", provenance=ROBBIE, supersedes=target, scope=scope
            )


async def records_in(store: InMemoryStore) -> dict[str, Record]:
    return {record.id: record async for some in store.scan() for record in some}


@given(story=st.lists(calls, max_size=14))
async def test_no_call_shows_or_changes_a_record_of_a_scope_that_is_not_named(
    story: list[Call],
) -> None:
    store = InMemoryStore(HashEmbedder())
    for made in story:
        before = await records_in(store)
        memory = memory_over(store, VIEWS[made.who])
        try:
            await done(memory, made, sorted(before))
        except (ValueError, RecordStoreError):
            assert await records_in(store) == before
        after = await records_in(store)
        changed = {one for one in before | after if before.get(one) != after.get(one)}
        touched = {(after.get(one) or before[one]).scope for one in changed}
        assert touched <= set(memory.scopes.writable)
        for view in VIEWS:
            recall = await memory_over(store, view).recall("door", k=50, min_score=0.0)
            assert {hit.record.scope for hit in recall.records} <= set(view.readable)
        for record in after.values():
            related = (record.supersedes, record.superseded_by, *record.lineage.contradicts)
            assert {after[one].scope for one in related if one in after} <= {record.scope}


async def test_scopes_and_ranking_are_part_of_the_declarative_form() -> None:
    for ranking in (None, Ranking(dense=1.0, neighbours=())):
        memory = LongTermMemory(InMemoryStore(HashEmbedder()), scope=SCOPES, ranking=ranking)
        config = LongTermMemoryConfig.of(memory)
        opened = LongTermMemoryConfig.model_validate_json(config.model_dump_json()).open()
        assert (opened.scopes, opened.ranking) == (SCOPES, ranking)
        assert LongTermMemoryConfig.of(opened) == config
    plain = LongTermMemoryConfig(scope="robbie")
    assert LongTermMemoryConfig.of(plain.open()) == plain


def call(**arguments: str) -> ActionCall:
    return ActionCall(id="1", action=SEMANTIC_ACTION, arguments=arguments)


def actions_of(memory: LongTermMemory) -> MemoryActions:
    now = MemorySituation(run="run", activity="main", cycle=1, agent="robbie")
    return MemoryActions(memory, ProceduralMemory(), lambda: now)


async def test_agent_chooses_whose_memory_it_writes_where_there_is_a_choice(
    store: InMemoryStore,
) -> None:
    actions = actions_of(memory_over(store, SCOPES))
    offered = {spec.name: spec.parameters["properties"] for spec in actions.action_specs()}
    assert offered[SEMANTIC_ACTION]["scope"]["enum"] == ["robbie", ANN]
    result = await actions.run_action(call(fact="Ann sleeps late.", scope=ANN))
    assert not result.is_error
    assert (await store.get([result.data["id"]]))[0].scope == ANN
    result = await actions.run_action(call(fact="All is well.", scope=BLUE))
    assert result.is_error
    assert "'team:blue' may not be written" in result.content
    alone = actions_of(memory_over(store, "robbie"))
    assert all("scope" not in spec.parameters["properties"] for spec in alone.action_specs())


async def test_agent_cannot_replace_a_fact_of_another_scope(store: InMemoryStore) -> None:
    theirs = await note(memory_over(store, BLUE), "The gate opens at nine.")
    actions = actions_of(memory_over(store, SCOPES))
    result = await actions.run_action(call(fact="It opens at ten.", supersedes=theirs.id[:8]))
    assert result.is_error
    assert "is of scope 'team:blue'" in result.content

"""One agent serves many people, and nothing of one is recalled, shown or written for another."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import BaseChatMessage, HandoffMessage
from autogen_core import CancellationToken, FunctionCall
from autogen_core.model_context import UnboundedChatCompletionContext
from hypothesis import given
from hypothesis import strategies as st
from kits.counters import PEOPLE, TOKEN, Counter, Leaky, Served, Till, at_desk, call, empty_desk
from kits.turns import proved

from coag import Bounds, CoagAgent, LongTermMemory, ScriptedModel, tool
from coag.awareness import Awareness, RecordArchive
from coag.errors import ConfigurationError, StateError
from coag.memory import Scopes, rules_of, user_scope
from coag.memory.network import AssociativeStore
from coag.proof import Rule, examine
from coag.schema import (
    EvaluationOutcome,
    MemoryKind,
    Percept,
    PerceptKind,
    Provenance,
    Reconciliation,
    Record,
    RetrievalOutcome,
    TraceRecord,
    Trust,
)
from coag.store import HashEmbedder, InMemoryStore, RecordStore
from coag.tracing import Recipe


async def everything(store: RecordStore) -> list[Record]:
    return [record async for some in store.scan() for record in some]


def of(record: Record) -> str:
    return record.scope.removeprefix("user:")


def check_apart(model: Leaky, records: Sequence[Record]) -> None:
    for served, text in model.shown:
        strangers = {found[1] for found in TOKEN.finditer(text)} - {served, "nobody"}
        assert not strangers, (served, text)
    by_id = {record.id: record for record in records}
    for record in records:
        assert record.scope.startswith("user:")
        assert {found[1] for found in TOKEN.finditer(record.text)} <= {of(record), "nobody"}
        tied = (
            record.supersedes,
            record.superseded_by,
            *record.lineage.contradicts,
            *record.lineage.derived_from,
        )
        assert all(by_id[one].scope == record.scope for one in tied if one is not None)


STEPS = st.sampled_from([*PEOPLE, "log_out", *["look_up", "note", "fact", "same"] * 2, "rule"])
TURNS = st.lists(st.lists(st.lists(STEPS, min_size=1, max_size=4), max_size=4), max_size=6)


@given(TURNS, st.booleans(), st.booleans())
async def test_nobody_learns_of_another_however_people_come_and_go(
    turns: list[list[list[str]]], associates: bool, aware: bool
) -> None:
    model, store = Leaky(), InMemoryStore(HashEmbedder())
    place: RecordStore = AssociativeStore(store) if associates else store
    archive = RecordArchive(place)
    agent = at_desk(model, place, modules=[Awareness(archive=archive)] if aware else [])
    for turn in turns:
        model.todo = [list(batch) for batch in turn]
        result = await agent.run(task="Please go on with what the caller wants.")
        served = model.served()
        last = result.messages[-1]
        assert isinstance(last, BaseChatMessage)
        assert {found[1] for found in TOKEN.finditer(last.to_model_text())} <= {served, "nobody"}
    kept = await everything(store)
    check_apart(model, [one for one in kept if not one.scope.startswith("awareness")])
    assert not examine(agent.trace).violations
    assert not any(rules_of(agent.procedures.get(n).text) for n in agent.procedures.names())


async def desk_of(*turns: Sequence[Sequence[str]], **options: Any) -> tuple[CoagAgent, Leaky]:
    model = Leaky()
    agent = at_desk(model, options.pop("store", None) or InMemoryStore(HashEmbedder()), **options)
    for turn in turns:
        model.todo = list(turn)
        await agent.run(task="Please go on with what the caller wants.")
    return agent, model


def recalled(trace: Sequence[TraceRecord]) -> list[tuple[str | None, list[str]]]:
    found = (record for record in trace if isinstance(record, RetrievalOutcome))
    return [(one.memory_scope, [hit.record.scope for hit in one.records]) for one in found]


async def test_what_one_person_had_kept_comes_back_to_this_person_alone() -> None:
    agent, model = await desk_of(
        [["ann"], ["look_up"], ["note", "fact"]], [["bob"], ["note"]], [["ann"]], []
    )
    scopes = recalled(agent.trace)
    assert ("user:bob", ["user:bob"]) in scopes
    assert set(scopes[-1][1]) == {"user:ann"}
    assert "T-ann-1" in model.shown[-1][1]
    assert not any("T-ann-1" in text for served, text in model.shown if served == "bob")


async def test_a_login_in_mid_turn_ends_what_was_known_of_the_one_before() -> None:
    agent, model = await desk_of([["ann"], ["look_up"], ["look_up", "bob", "look_up"], []])
    served, text = model.shown[-1]
    assert served == "bob"
    assert "T-bob-3" in text
    assert "T-ann" not in text
    assert "Please go on with what the caller wants." in text
    memory = agent.context.working_memory
    assert memory.memory_scope == "user:bob"


async def test_nothing_is_remembered_while_nobody_is_known() -> None:
    store = InMemoryStore(HashEmbedder())
    agent, model = await desk_of([["same", "note"]], store=store)
    assert not await everything(store)
    assert "it is not known whom you serve" in model.shown[-1][1]
    assert not examine(agent.trace).violations


async def test_what_is_everybodys_is_recalled_for_everybody_and_only_read() -> None:
    store = InMemoryStore(HashEmbedder())
    shared = LongTermMemory(store, scope=Scopes(own="desk", writes=("team:shop",)))
    origin = Provenance(
        run="", activity="", cycle=0, source="owner", source_kind="person", trust=Trust.USER
    )
    text = "What the caller wants goes on within five days."
    await shared.remember(MemoryKind.SEMANTIC, text, provenance=origin)
    model = Leaky()
    agent = at_desk(model, store)
    model.todo = [["ann"], ["note"]]
    await agent.run(task="Please go on with what the caller wants.")
    assert all("within five days" in shown for _, shown in model.shown)
    assert {one.scope for one in await everything(store)} == {"desk", "user:ann"}


async def test_a_rule_that_would_hold_for_everybody_waits_for_approval() -> None:
    agent, model = await desk_of([["ann"], ["rule"], []])
    assert "for everybody" in model.shown[-1][1]
    assert len(agent.procedures.pending()) == 1


async def test_an_agent_can_take_back_what_it_keeps_of_anybody() -> None:
    store = InMemoryStore(HashEmbedder())
    agent, _ = await desk_of([["ann"], ["look_up"], ["fact"], ["bob"], ["fact"]], store=store)
    (anns,) = [one for one in await everything(store) if of(one) == "ann"]
    await agent.revoke(anns.id, "She asked for it.")
    assert [of(one) for one in await everything(store)] == ["bob"]


async def test_the_dialogue_of_another_context_is_let_go_of_too() -> None:
    dialogue = UnboundedChatCompletionContext()
    agent, model = await desk_of(
        [["ann"], ["look_up"]], [["bob"], []], model_context=Served(dialogue=dialogue)
    )
    assert "T-ann" not in model.shown[-1][1]
    assert "T-ann" not in str(await dialogue.get_messages())
    assert "T-ann" not in str(await agent.context.get_messages())


async def test_a_run_with_many_people_is_replayed_and_resumed(tmp_path: Path) -> None:
    turns = [[["ann"], ["look_up"], ["note", "fact"]], [["bob"], ["note"]]]
    agent, _ = await desk_of(
        *turns, logs=tmp_path, recipe=Recipe(factory="kits.counters:empty_desk")
    )
    before = agent.context.working_memory
    run = await proved(agent, empty_desk)
    resumed = await CoagAgent.resume(run)
    assert resumed.context.working_memory == before
    assert resumed.context.memory_scope() == "user:bob"
    await resumed.close()


async def test_verify_finds_a_record_that_was_recalled_for_another() -> None:
    agent, _ = await desk_of([["ann"], ["look_up"], ["fact"], ["note"]])
    lied = [
        record.model_copy(update={"memory_scope": "user:bob"})
        if isinstance(record, RetrievalOutcome) and record.records
        else record
        for record in agent.trace
    ]
    assert Rule.PERSON in {one.rule for one in examine(lied).violations}


class Raising(Served):
    def _get_memory_scope(self, state: Counter) -> str | None:
        if state.customer == "bob":
            raise KeyError("no such account")
        return super()._get_memory_scope(state)


async def test_an_unknown_scope_stops_the_agent_and_shows_nobodys_memory() -> None:
    with pytest.raises(StateError, match="_get_memory_scope raised KeyError: 'no such account'"):
        await desk_of([["ann"], ["look_up"], ["fact"], ["bob"], ["note"]], model_context=Raising())


async def test_a_memory_that_reads_a_person_by_itself_cannot_keep_people_apart() -> None:
    store = InMemoryStore(HashEmbedder())
    memory = LongTermMemory(store, scope=Scopes(own="desk", reads=("user:ann",)))
    with pytest.raises(ConfigurationError, match="reads 'user:ann'"):
        memory.within(user_scope("bob"))
    with pytest.raises(ConfigurationError, match="reads 'user:ann'"):
        memory.shared()


async def test_an_action_of_unknown_outcome_is_hidden_from_another_person_and_not_forgotten() -> (
    None
):
    agent, model = await desk_of([["ann"], ["post_parcel"]], extra=[post_parcel])
    assert "post_parcel {" in model.shown[-1][1]
    model.todo = [["bob"], ["post_parcel"], ["ann"], []]
    await agent.run(task="Please go on with what the caller wants.")
    for served, text in model.shown[-3:]:
        assert ("Not known whether these had their effect" in text) == (served == "ann")
    assert len(agent.context.working_memory.unsettled) == 1
    judged = [
        one
        for record in agent.trace
        if isinstance(record, EvaluationOutcome)
        for one in record.evaluations
        if one.rejected_by is not None
    ]
    assert [one.rejected_by.constraint for one in judged if one.rejected_by] == ["unsettled"]


async def post_parcel(street: str = "Elm") -> str:
    """Posts a parcel, and never says that it did."""
    await asyncio.Event().wait()
    return street


async def test_a_handoff_carries_nothing_that_was_brought_for_the_one_before() -> None:
    model = Leaky()
    agent = at_desk(model, InMemoryStore(HashEmbedder()), handoffs=["boss"])
    model.todo = [["ann"], ["look_up"], ["look_up", "bob", "look_up", "transfer_to_boss"]]
    message = (await agent.run(task="Please go on.")).messages[-1]
    assert isinstance(message, HandoffMessage)
    assert "T-bob-3" in str(message.context)
    assert "T-ann" not in str(message.context)


@pytest.mark.parametrize("bounds", [{"max_tool_iterations": 2}, {"bounds": Bounds(cycles=2)}])
async def test_a_turn_that_a_bound_ends_shows_nothing_recalled_for_the_turn_before(
    bounds: dict[str, Any],
) -> None:
    model = Leaky()
    agent = at_desk(model, InMemoryStore(HashEmbedder()), **bounds)
    model.todo = [["ann"], ["look_up", "bob", "look_up"]]
    message = (await agent.run(task="Please go on.")).messages[-1]
    assert isinstance(message, BaseChatMessage)
    assert "bob" in message.to_text()
    assert "T-ann" not in message.to_text()


async def test_what_was_thought_out_for_one_person_is_not_said_to_the_next() -> None:
    answers: list[Any] = [
        [call("ann", "", 1)],
        [
            call("bob", "", 2),
            FunctionCall(id="", name="respond", arguments='{"text": "Ann, all is well."}'),
        ],
        "Welcome.",
    ]
    agent = CoagAgent(
        "desk",
        ScriptedModel(lambda request: answers.pop(0)),
        tools=Till().tools(),
        model_context=Served(),
        depth="compact",
    )
    message = (await agent.run(task="Please go on.")).messages[-1]
    assert isinstance(message, BaseChatMessage)
    assert message.to_text() == "Welcome."


class Unread(Served):
    def _update_state_from_function_result(self, state: Counter, percept: Percept) -> Counter:
        if percept.data == {"customer": "bob"}:
            raise KeyError("no such account")
        return super()._update_state_from_function_result(state, percept)


async def test_after_a_login_that_could_not_be_read_nobodys_memory_is_shown() -> None:
    agent, model = await desk_of([["ann"], ["look_up"], ["fact"]], model_context=Unread())
    model.todo = [["bob"]]
    with pytest.raises(StateError, match="no such account"):
        await agent.run(task="This is Bob.")
    asked = len(model.shown)
    with pytest.raises(StateError, match="It is not known who is served"):
        await agent.run(task="What do you know of me?")
    assert len(model.shown) == asked


class Settling(Served):
    settled = 0

    def _update_state_from_settlement(self, state: Counter, percept: Percept) -> Counter:
        self.settled += 1
        return state


async def test_the_outcome_of_an_action_is_not_shown_to_another_person() -> None:
    context = Settling()
    became: list[Reconciliation] = ["unknown"]
    post = tool(reconcile=lambda action: became[0])(post_parcel)
    turns = [["ann"], ["post_parcel"]], [["bob"]]
    agent, model = await desk_of(*turns, extra=[post], model_context=context)
    became[0], asked = "happened", len(model.shown)
    await agent.run(task="Please go on with what the caller wants.")
    assert not agent.context.working_memory.unsettled
    assert not any("post_parcel {" in text for _, text in model.shown[asked:])
    assert context.settled == 0  # the state is somebody else's by now


def bobs_card(agent: CoagAgent) -> Percept:
    return Percept(
        id="card-1",
        at=agent.context.clock.now(),
        kind=PerceptKind.SIGNAL,
        source="card",
        trust=Trust.DEVELOPER,
        content="A card was put in.",
        state_patch={"customer": "bob"},
    )


@pytest.mark.parametrize("foreign", [False, True])
async def test_a_saved_state_holds_no_word_of_the_one_before(foreign: bool) -> None:
    def served() -> Served:
        return Served(dialogue=UnboundedChatCompletionContext() if foreign else None)

    agent, _ = await desk_of([["ann"], ["look_up"]], model_context=served())
    await agent.perceive(bobs_card(agent))
    assert "T-ann" not in str(await agent.context.get_messages())
    saved = await agent.save_state()
    assert "T-ann" not in str(saved)
    other, model = await desk_of(model_context=served())
    await other.load_state(saved)
    await other.run(task="Please go on with what the caller wants.")
    assert not any("T-ann" in text for _, text in model.shown)


async def test_a_state_without_modules_leaves_nothing_of_the_one_before_in_them() -> None:
    aware = Awareness()
    agent, _ = await desk_of([["ann"], ["look_up"], ["look_up"]], modules=[aware])
    assert "T-ann" in str(aware.save_state())
    await agent.load_state({"type": "AssistantAgentState", "llm_context": {"messages": []}})
    assert "T-ann" not in str(aware.save_state())


async def test_two_people_get_two_keys_for_the_same_action() -> None:
    keys: list[str] = []

    @tool()
    def pay_out(idempotency_key: str) -> str:
        """Pays out the balance of the user who is logged in."""
        keys.append(idempotency_key)
        return "paid"

    steps = [["ann"], ["pay_out"], ["bob"], ["pay_out"], ["ann"], ["pay_out"]]
    await desk_of(steps, extra=[pay_out])
    assert keys[0] == keys[2] != keys[1]


async def test_a_turn_that_stopped_at_a_login_is_resumed_without_the_one_before(
    tmp_path: Path,
) -> None:
    agent, _ = await desk_of(
        [["ann"], ["look_up"], ["look_up"], ["bob"]],
        logs=tmp_path,
        modules=[Awareness()],
        recipe=Recipe(factory="kits.counters:aware_desk"),
    )
    folder = agent.run_folder
    assert folder is not None
    await agent.close()
    lines = folder.trace_path.read_bytes().splitlines(keepends=True)
    login = next(n for n, line in enumerate(lines) if b'"memory_scope":"user:bob"' in line)
    folder.trace_path.write_bytes(b"".join(lines[: login + 1]))
    shutil.rmtree(folder.path / "cycles")
    resumed = await CoagAgent.resume(folder)
    assert resumed.context.memory_scope() == "user:bob"
    assert "T-ann" not in str(await resumed.save_state())
    await resumed.run()
    await resumed.close()


async def test_what_is_called_in_one_batch_with_a_login_is_brought_for_whom_it_was_called() -> None:
    served = ["ann"]

    async def log_in(customer: str) -> dict[str, str]:
        """Logs a customer in, which takes a while."""
        await asyncio.sleep(0.01)
        served[0] = customer
        return {"customer": customer}

    async def look_up() -> str:
        """Returns what is known of the user who is logged in."""
        return f"The order is T-{served[0]}-1."

    model = Leaky()
    model.todo = [["ann"], ["bob", "look_up"]]
    agent = CoagAgent(
        "desk",
        model.model(),
        tools=[log_in, look_up],
        model_context=Served(),
        depth="compact",
    )
    await agent.run(task="Please go on.")
    assert "T-bob-1" in model.shown[-1][1]
    assert "T-ann-1" not in model.shown[-1][1]


@pytest.mark.parametrize("how", ["in the next turn", "by a card"])
async def test_what_a_turn_that_broke_off_was_asked_is_not_asked_for_the_next_person(
    how: str,
) -> None:
    token = CancellationToken()

    async def hang() -> str:
        """Never comes back."""
        token.cancel()
        await asyncio.Event().wait()
        return "never"

    agent, model = await desk_of([["ann"]], extra=[hang], model_context=WithCard())
    model.todo = [["hang"]]
    with pytest.raises(asyncio.CancelledError):
        await agent.run(task="Ann asks for T-ann-5.", cancellation_token=token)
    if how == "by a card":
        await agent.perceive(card("bob"))
        model.todo = []
    else:
        model.todo = [["bob"], []]
    await agent.run(task="This is Bob.")
    assert "T-ann-5" not in model.shown[-1][1]
    assert "This is Bob." in model.shown[-1][1]
    assert agent.context.working_memory.goal == "This is Bob."


class WithCard(Served):
    def _update_state_from_percept(self, state: Counter, percept: Percept) -> Counter:
        return Counter(customer=percept.data["customer"])


def card(customer: str) -> Percept:
    return Percept(
        id=f"card-{customer}",
        at=datetime(2026, 1, 1, tzinfo=UTC),
        kind=PerceptKind.SIGNAL,
        source="card",
        trust=Trust.UNTRUSTED,
        content="A card was read.",
        data={"customer": customer},
    )

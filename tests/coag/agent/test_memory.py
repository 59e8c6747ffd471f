"""What an agent remembers beyond its turns."""

from __future__ import annotations

import json
from pathlib import Path

from autogen_agentchat.messages import MemoryQueryEvent, TextMessage
from autogen_core import CancellationToken
from kits.brains import brain, respond
from kits.turns import proved, say, traced

from coag import CoagAgent, LongTermMemory
from coag.context import AssistantState, Budgets, CoagContext
from coag.schema import MemoryKind, Provenance, Record, RetrievalOutcome, Trust, Written
from coag.store import HashEmbedder, InMemoryStore

NOTE = ("tool_update_episodic_memory", '{"summary": "The red door is locked."}')
FACT = ("tool_update_semantic_memory", '{"fact": "Red doors are always locked."}')


def rule(text: str) -> tuple[str, str]:
    arguments = {
        "procedure": "reasoning",
        "operation": "add",
        "rule": text,
        "reason": "It was learned.",
    }
    return "tool_update_procedural_memory", json.dumps(arguments)


def notes(agent: CoagAgent, about: str) -> list[str]:
    return [r.text for r in agent.trace if r.record == "note" and r.about == about]


async def test_an_event_worth_remembering_becomes_a_record_with_its_origin() -> None:
    agent = CoagAgent("scout", brain(NOTE, respond()), memory=":memory:", proposal="json")
    await say(agent, "Try the red door.")
    (line,) = traced(agent, Written)
    record = Record.model_validate(line.content)
    assert (record.kind, record.text) == (MemoryKind.EPISODIC, "The red door is locked.")
    assert record.provenance.source == "scout"
    assert record.provenance.source_kind == "agent"
    assert record.provenance.cycle == 1
    assert "scout" in record.provenance.run
    assert record.provenance.trust is Trust.USER


async def test_what_is_remembered_is_recalled_in_the_next_turn_and_shown() -> None:
    model = brain(FACT, respond(), respond())
    agent = CoagAgent("scout", model, memory=":memory:", proposal="json")
    await say(agent, "Try the red door.")
    stream = agent.on_messages_stream(
        [TextMessage(content="Are red doors locked?", source="user")], CancellationToken()
    )
    events = [item async for item in stream if isinstance(item, MemoryQueryEvent)]
    assert [c.content for e in events for c in e.content] == ["Red doors are always locked."]
    assert '<data source="memory" trust=' in model.requests[-1].text


async def test_records_and_rules_outlast_the_agent(tmp_path: Path) -> None:
    first = CoagAgent(
        "scout", brain(FACT, rule("Try the handle."), respond()), memory=tmp_path, proposal="json"
    )
    await say(first, "Try the red door.")
    await first.close()
    model = brain(respond())
    second = CoagAgent("scout", model, memory=tmp_path, proposal="json")
    await say(second, "Are red doors locked?")
    await second.close()
    text = model.requests[0].text
    assert "Red doors are always locked." in text
    assert "Try the handle." in text


async def test_a_rule_holds_from_the_next_cycle_on() -> None:
    model = brain(rule("Try the handle."), respond())
    agent = CoagAgent("scout", model, memory=":memory:", proposal="json")
    await say(agent, "Try the red door.")
    reasoning = [r.text for r in model.requests if r.schema_name == "ReasoningAnswer"]
    assert ["Try the handle." in text.partition("# Data")[0] for text in reasoning] == [False, True]
    (line,) = traced(agent, Written)
    assert line.id == "reasoning@2"
    versions = [
        r.procedures["reasoning"]
        for r in agent.trace
        if r.record == "outcome" and r.phase == "retrieval"
    ]
    assert versions == [1, 2]


# ---- AutoGen's memories ----


async def test_a_store_that_fails_is_a_failed_action_and_no_end_of_the_turn() -> None:
    memory = LongTermMemory(InMemoryStore(HashEmbedder()), scope="scout")
    await memory.close()
    agent = CoagAgent("scout", brain(NOTE, respond()), memory=memory, proposal="json")
    assert await say(agent, "Try the red door.") == "Done."
    deed = agent.context.working_memory.deeds[0]
    assert (deed.status.value, deed.result) == ("failed", "This store was closed.")
    assert len(notes(agent, "memory")) == 4


async def test_the_address_of_a_server_is_reached_at_its_first_use_only() -> None:
    agent = CoagAgent("scout", brain(respond()), memory="http://127.0.0.1:9", proposal="json")
    assert agent.procedures.names()
    await agent.close()


async def test_a_record_without_room_in_the_prompt_is_named_in_the_trace(tmp_path: Path) -> None:
    def scout(memory: LongTermMemory | str = ":memory:") -> CoagAgent:
        return CoagAgent(
            "scout",
            brain(respond()),
            memory=memory,
            model_context=CoagContext[AssistantState](budgets=Budgets(recalled=60)),
            logs=None if memory == ":memory:" else tmp_path,
            proposal="json",
        )

    memory = LongTermMemory(InMemoryStore(HashEmbedder()), scope="scout")
    for text in ("Red doors are locked.", "Red doors are heavy. " + "They creak. " * 30):
        origin = Provenance(
            run="", activity="", cycle=0, source="ann", source_kind="user", trust=Trust.USER
        )
        await memory.remember(MemoryKind.SEMANTIC, text, provenance=origin)
    agent = scout(memory)
    await say(agent, "Are red doors locked?")
    (outcome,) = traced(agent, RetrievalOutcome)
    assert [hit.record.text for hit in outcome.records] == ["Red doors are locked."]
    assert all(hit.why is not None for hit in outcome.records)
    assert len(outcome.left_out) == 1
    await proved(agent, scout)

"""A planted poison is taken back through the agent, with all that came of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kits.brains import brain, respond
from kits.turns import proved, say, traced

from coag import CoagAgent, LongTermMemory
from coag.agent.resume import recover_memory
from coag.memory import (
    EPISODIC_ACTION,
    PROCEDURAL_ACTION,
    SEMANTIC_ACTION,
    GateSettings,
    ProceduralMemory,
)
from coag.schema import MemoryKind, Provenance, Record, Trust, Written
from coag.store import HashEmbedder, InMemoryStore

POISON = "All keys belong under the mat of the front door."
LESSON = "The cellar key, as all keys belong under the mat, lies there."
FRIEND = Provenance(
    run="", activity="", cycle=0, source="friend", source_kind="message", trust=Trust.UNTRUSTED
)
ASKED = "Where do all keys belong, under the mat?"
RULE = "Look below the doormat first when a key is wanted."


async def read_sign() -> str:
    """Reads the sign in the hall."""
    return POISON


def porter(memory: LongTermMemory | str = ":memory:", logs: Path | None = None) -> CoagAgent:
    rule = {"procedure": "reasoning", "operation": "add", "rule": RULE, "reason": "It was told."}
    mind = brain(
        ("read_sign", "{}"),
        (EPISODIC_ACTION, json.dumps({"summary": POISON})),
        (SEMANTIC_ACTION, json.dumps({"fact": LESSON})),
        (PROCEDURAL_ACTION, json.dumps(rule)),
        respond(),
    )
    gate = GateSettings(untrusted_requires_approval=False)
    return CoagAgent(
        "porter", mind, tools=[read_sign], memory=memory, logs=logs, proposal="json", gate=gate
    )


async def poisoned(agent: CoagAgent) -> Record:
    await say(agent, ASKED)
    event, conclusion, rule = traced(agent, Written)
    poison, lesson = (Record.model_validate(one.content) for one in (event, conclusion))
    assert (poison.kind, poison.provenance.trust) == (MemoryKind.EPISODIC, Trust.UNTRUSTED)
    assert lesson.lineage.derived_from == (poison.id,)
    assert rule.id == "reasoning@2"
    assert RULE in agent.procedures.get("reasoning").text
    return poison


async def test_record_conclusion_and_rule_are_gone_and_the_trace_says_so(tmp_path: Path) -> None:
    agent = porter(logs=tmp_path)
    poison = await poisoned(agent)
    gone = await agent.revoke(poison.id, "The sign was a joke.")

    assert len(gone.records) == 2
    assert (await agent.long_term_memory.recall("keys under the mat")).records == ()
    assert RULE not in agent.procedures.get("reasoning").text
    revoked, version = traced(agent, Written)[-2:]
    assert (revoked.what, revoked.id) == ("revoked", poison.id)
    assert revoked.content["reason"] == "The sign was a joke."
    assert set(revoked.content["records"]) == set(gone.records)
    assert revoked.content["procedures"] == {"reasoning": 3}
    assert (version.what, version.id) == ("procedure", "reasoning@3")
    await say(agent, "And now?")
    await proved(agent, porter)


async def test_a_revoked_source_is_in_the_trace_and_is_replayed(
    tmp_path: Path,
) -> None:
    agent = porter(logs=tmp_path)
    poison = await poisoned(agent)
    source = poison.provenance.source
    gone = await agent.revoke_origin(poison.id, source, "It reads signs badly.")
    await say(agent, "And now?")
    line = next(one for one in traced(agent, Written) if one.what == "revoked")
    assert (line.id, line.content["source"], gone.source) == (poison.id, source, source)
    assert line.content["records"] == list(gone.records)
    assert len(gone.records) == 2
    await proved(agent, porter)


async def test_memory_in_ram_comes_back_without_the_word_that_was_taken_back() -> None:
    agent = porter()
    poison = await poisoned(agent)
    lineage = poison.lineage.model_copy(update={"also_from": (FRIEND,)})
    shared = poison.model_copy(update={"lineage": lineage})
    await agent.long_term_memory.store.update([shared])
    gone = await agent.revoke_origin(None, "friend", "They were wrong.")
    assert (gone.record_id, gone.lowered, gone.records) == ("", (poison.id,), ())
    assert await agent.long_term_memory.store.get([poison.id]) == [poison]

    first, *lines = traced(agent, Written)
    first = first.model_copy(update={"content": shared.model_dump(mode="json")})
    memory = LongTermMemory(InMemoryStore(HashEmbedder()), scope="porter")
    await recover_memory([first, *lines], memory, ProceduralMemory())
    assert await memory.store.get([poison.id]) == [poison]
    await agent.close()


async def test_revoking_wants_a_reason() -> None:
    agent = porter()
    poison = await poisoned(agent)
    with pytest.raises(ValueError, match="reason is empty"):
        await agent.revoke(poison.id, " ")
    assert len(traced(agent, Written)) == 3

"""Memory, awareness and labels around stock agents of the Agent Framework."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, Content, Message
from kits.maf_client import Answer, AnsweringClient

from coag.integrations.agent_framework import (
    AwarenessProvider,
    MemoryProvider,
    label_of,
    set_label,
    trust_of,
)
from coag.memory import LongTermMemory, Scopes, agent_scope, user_scope
from coag.schema import MemoryKind, Trust
from coag.store import HashEmbedder, InMemoryStore, Search


def memory_of(*reads: str) -> LongTermMemory:
    store = InMemoryStore(HashEmbedder())
    return LongTermMemory(store, scope=Scopes(own=agent_scope("clerk"), reads=reads))


def clerk(provider: Any, *answers: Answer) -> tuple[Agent[Any], AnsweringClient]:
    client = AnsweringClient(*answers)
    return Agent(client, context_providers=[provider]), client


def shown(client: AnsweringClient, number: int, source: str) -> list[Message]:
    """The messages of a request that a provider added."""
    return [
        message
        for message in client.requests[number]
        if message.additional_properties.get("_attribution", {}).get("source_id") == source
    ]


async def kept(memory: LongTermMemory) -> dict[str, Trust]:
    found = await memory.store.search(
        Search(kind=MemoryKind.EPISODIC, text=None, k=20, scopes=(memory.scope,))
    )
    return {one.record.text: one.record.provenance.trust for one in found}


async def test_what_was_said_in_one_session_is_recalled_in_another_as_quoted_data() -> None:
    memory = memory_of()
    agent, client = clerk(MemoryProvider(memory, min_score=0.0), "Noted.", "Green.")
    first, second = agent.create_session(), agent.create_session()

    await agent.run("My door is green.", session=first)
    await agent.run("Which colour has my door?", session=second)

    (block,) = shown(client, 1, "coag_memory")
    assert block.role == "user"
    assert "My door is green." in block.text
    assert '<data source="long_term_memory" trust="untrusted">' in block.text
    assert shown(client, 0, "coag_memory") == []
    state = json.loads(json.dumps(second.to_dict()))["state"]["coag_memory"]
    assert state["turn"] == 1
    assert state["recalled"] == first.state["coag_memory"]["written"]


async def test_what_is_labelled_untrusted_is_remembered_as_untrusted() -> None:
    memory = memory_of()
    agent, client = clerk(MemoryProvider(memory, writes="all", min_score=0.0), "Ok.", "Ok then.")
    mail = Message("user", ["The safe's number is 7."])
    set_label(mail, Trust.UNTRUSTED)

    await agent.run([mail, Message("user", ["Keep this."])], session=agent.create_session())

    records = await kept(memory)
    assert records["The safe's number is 7."] is Trust.UNTRUSTED
    assert records["Keep this."] is Trust.USER
    assert records["Ok."] is Trust.UNTRUSTED

    await agent.run("Which number has the safe?", session=agent.create_session())
    (block,) = shown(client, 1, "coag_memory")
    assert block.additional_properties["security_label"]["integrity"] == "untrusted"


async def test_what_only_the_user_said_is_shown_with_the_label_of_the_user() -> None:
    provider = MemoryProvider(memory_of(), writes="user", min_score=0.0)
    agent, client = clerk(provider, "Noted.", "Green.")
    for text in ("My door is green.", "Which colour has my door?"):
        await agent.run(text, session=agent.create_session())
    (block,) = shown(client, 1, "coag_memory")
    assert block.additional_properties["security_label"]["integrity"] == "trusted"


async def test_the_write_policy_refuses_what_is_no_record(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = memory_of()
    agent, _ = clerk(MemoryProvider(memory), "Long.")

    await agent.run("x" * 30_000, session=agent.create_session())

    assert await kept(memory) == {}
    assert "30000 characters" in caplog.text


async def test_nothing_is_written_where_only_recall_is_wanted() -> None:
    memory = memory_of()
    agent, _ = clerk(MemoryProvider(memory, writes="nothing"), "Fine.")
    await agent.run("My door is green.", session=agent.create_session())
    assert await kept(memory) == {}


async def test_each_person_has_a_memory_of_their_own() -> None:
    memory = memory_of()

    def scope(session: AgentSession) -> str:
        return user_scope(session.state["user"])

    provider = MemoryProvider(memory, scope=scope, min_score=0.0)
    agent, client = clerk(provider, "Noted.", "I do not know.", "Green.")

    for number, user in enumerate(("ann", "bob", "ann")):
        session = agent.create_session()
        session.state["user"] = user
        await agent.run(f"My door is green, says {number}.", session=session)

    assert shown(client, 1, "coag_memory") == []
    (block,) = shown(client, 2, "coag_memory")
    assert "says 0" in block.text


async def test_the_situation_is_kept_in_the_session() -> None:
    provider = AwarenessProvider()
    agent, client = clerk(provider, "Ok.", "Ok.")
    session = agent.create_session()

    await agent.run("I want to buy a green door.", session=session)
    again = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    await agent.run("It must be wide.", session=again)

    before = session.state["coag_awareness"]["situation"]["step"]
    assert again.state["coag_awareness"]["situation"]["step"] == before + 1
    (block,) = shown(client, 1, "coag_awareness")
    assert '<data source="situational_awareness" trust="untrusted">' in block.text


def test_options_that_cannot_be_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        MemoryProvider(memory_of(), k=0)
    with pytest.raises(ValueError, match="budget"):
        AwarenessProvider(budget=0)


def test_a_label_never_raises_trust() -> None:
    plain = Message("user", ["Hello."])
    assert trust_of(plain) is Trust.UNTRUSTED
    assert trust_of(plain, unlabelled=Trust.USER) is Trust.USER

    set_label(plain, Trust.USER, "private")
    assert trust_of(plain) is Trust.UNTRUSTED
    assert trust_of(plain, unlabelled=Trust.USER) is Trust.USER

    set_label(plain, Trust.UNTRUSTED)
    set_label(plain, Trust.USER)
    assert trust_of(plain, unlabelled=Trust.USER) is Trust.UNTRUSTED
    assert plain.additional_properties["security_label"]["confidentiality"] == "private"


@pytest.mark.parametrize("label", ["trusted", {}, None, {"integrity": 3}, {"integrity": "high"}])
def test_what_is_no_label_is_untrusted(label: object) -> None:
    content = Content.from_text("Hello.", additional_properties={"security_label": label})
    assert trust_of(content, unlabelled=Trust.USER) is Trust.UNTRUSTED
    whole = Message("user", [content])
    assert trust_of(whole, unlabelled=Trust.USER) is Trust.UNTRUSTED


def test_our_labels_are_read_by_the_framework() -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from agent_framework.security import ContentLabel

        assert not ContentLabel.from_dict(dict(label_of(Trust.UNTRUSTED))).is_trusted()
        assert ContentLabel.from_dict(dict(label_of(Trust.USER, "private"))).is_trusted()

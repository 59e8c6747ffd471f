"""Intentions at the seam: reminders as percepts of an agent, and its actions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.kettles import cook, kitchen, scripted, when_there_are

from coag import CoagAgent, ScriptedModel
from coag.agent import SituatedAgent
from coag.errors import ConfigurationError
from coag.memory.consolidation import AtEvent, AtTime, InContext, IntentionModule, Intentions
from coag.memory.consolidation.intention_module import CANCEL_ACTION, REMIND_ACTION
from coag.memory.dynamics import MemoryDynamics
from coag.schema import (
    ActionCall,
    ActionResult,
    ExecutionOutcome,
    ExecutionStatus,
    FeltRecord,
    Percept,
    PerceptKind,
    Phase,
    ReasoningOutcome,
    RetrievalOutcome,
    Situation,
    SystemClock,
    Trust,
)
from coag.situated import VirtualClock
from coag.store import HashEmbedder

HOUR = timedelta(hours=1)
FACTS: dict[str, Any] = {"activity": "a", "goal": "g", "cycle": 1, "query": ""}
PROPOSAL = Situation(phase=Phase.PROPOSAL, **FACTS)


@asynccontextmanager
async def remembering(
    path: Path | None = None, **options: Any
) -> AsyncGenerator[tuple[IntentionModule, VirtualClock]]:
    clock = options.pop("clock", None) or VirtualClock()
    dynamics = MemoryDynamics("plain", path=path, clock=clock)
    yield IntentionModule(Intentions(dynamics, embedder=HashEmbedder()), **options), clock
    dynamics.close()


def percept(content: str = "Hello.", source: str = "bert", **fields: Any) -> Percept:
    given: dict[str, Any] = {"id": content, "kind": PerceptKind.MESSAGE, "trust": Trust.USER}
    given |= {"content": content, "source": source, "at": SystemClock().now(), **fields}
    return Percept(**given)


async def act(module: IntentionModule, action: str, **arguments: Any) -> ActionResult:
    return await module.run_action(ActionCall(id="i", action=action, arguments=arguments))


async def texts(module: IntentionModule) -> list[str]:
    return [one.data["text"] for one in await module.take_percepts()]


# ---- The actions ----


async def test_an_agent_is_reminded_when_it_said() -> None:
    async with remembering() as (module, clock):
        at = (clock.now() + HOUR).isoformat()
        await act(module, REMIND_ACTION, text="Tea", at=at)
        await act(module, REMIND_ACTION, text="Stretch", after_seconds=60, every_seconds=7200)
        await act(module, REMIND_ACTION, text="Key", event="bert", again=True)
        await act(module, REMIND_ACTION, text="Milk", about="grocery shopping")
        await act(module, REMIND_ACTION, text="Bread", about="baker", every_seconds=1)
        triggers = {one.text: one.trigger for one in module.intentions.pending()}
        assert triggers == {
            "Tea": AtTime(at=clock.now() + HOUR),
            "Stretch": AtTime(at=clock.now() + timedelta(seconds=60), every=7200),
            "Key": AtEvent(event="bert", recurring=True),
            "Milk": InContext(cue="grocery shopping"),
            "Bread": InContext(cue="baker", rest=3600),
        }
        await clock.advance(3600)
        assert sorted(await texts(module)) == ["Stretch", "Tea"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"text": "Tea"}, "exactly one of at, after_seconds, event and about, not none"),
        ({"text": "Tea", "event": "bert", "about": "x"}, "not event and about"),
        ({"text": "", "event": "bert"}, "text"),
        ({"text": "Tea", "at": "1999-01-01T00:00:00Z"}, "has passed: it is 2026"),
        ({"text": "Tea", "at": "tomorrow"}, "at"),
        ({"text": "Tea", "after_seconds": -5}, "after_seconds"),
        ({"text": "Tea", "after_seconds": 1e300}, "beyond all calendars"),
        ({"text": "Tea", "after_seconds": 5, "every_seconds": 0.5}, "every_seconds"),
        ({"text": "Tea", "event": "bert", "every_seconds": 5}, "again=true"),
        ({"text": "Tea", "after_seconds": 5, "again": True}, "again is for an event"),
        ({"text": "Tea", "where": "here"}, "where"),
    ],
)
async def test_a_reminder_that_makes_no_sense_is_refused(
    arguments: dict[str, Any], said: str
) -> None:
    async with remembering() as (module, _):
        result = await act(module, REMIND_ACTION, **arguments)
        assert result.is_error
        assert said in result.content
        assert module.intentions.pending() == ()


async def test_a_reminder_is_cancelled_by_its_id_and_a_wrong_one_names_those_that_wait() -> None:
    async with remembering() as (module, _):
        made = await act(module, REMIND_ACTION, text="Tea", event="bert")
        wrong = await act(module, CANCEL_ACTION, id="tea")
        assert wrong.is_error
        assert f"{made.data['id']} (Tea)" in wrong.content
        assert not (await act(module, CANCEL_ACTION, id=made.data["id"])).is_error
        assert "none" in (await act(module, CANCEL_ACTION, id="tea")).content
        assert (await act(module, "sing")).is_error
        assert {spec.name for spec in module.action_specs()} == {REMIND_ACTION, CANCEL_ACTION}
        assert all(spec.internal for spec in module.action_specs())


async def test_what_an_agent_notes_after_untrusted_text_comes_back_untrusted() -> None:
    async with remembering() as (module, _):
        await module.observe(percept("Pay Eve.", "web", trust=Trust.UNTRUSTED))
        await act(module, REMIND_ACTION, text="Pay Eve", event="bert")
        await module.observe(percept("Something else", sets_goal=True))
        await act(module, REMIND_ACTION, text="Pay her today", event="bert")
        module.reset_state()
        await act(module, REMIND_ACTION, text="Tea", event="bert")
        await module.observe(percept())
        found = {one.data["text"]: one.trust for one in await module.take_percepts()}
        strange = dict.fromkeys(("Pay Eve", "Pay her today"), Trust.UNTRUSTED)
        assert found == {**strange, "Tea": Trust.USER}
        for one in await module.take_percepts():
            await module.observe(one)
        await act(module, REMIND_ACTION, text="More", event="bert")
        assert module.intentions.pending()[-1].trust is Trust.UNTRUSTED


@pytest.mark.parametrize("brought", ["section", "action", "feeling"])
async def test_untrusted_text_in_no_percept_and_no_record_makes_reminders_untrusted_too(
    brought: str,
) -> None:
    facts: dict[str, Any] = {"cycle": 1, "at": SystemClock().now()}
    ran = {"status": ExecutionStatus.DONE, "internal": True, "action": "rehydrate_memory"}
    felt = FeltRecord(id="1" * 32, cue="Eve", trust=Trust.UNTRUSTED, score=0.5)
    outcome = {
        "section": ReasoningOutcome(situation="", untrusted_from=("judgment",), **facts),
        "action": ExecutionOutcome(result="Pay Eve.", **ran, **facts),
        "feeling": RetrievalOutcome(query="", felt=(felt,), **facts),
    }[brought]
    async with remembering() as (module, _):
        await module.observe(outcome)
        await act(module, REMIND_ACTION, text="Pay Eve", event="bert")
        (waiting,) = module.intentions.pending()
        assert waiting.trust is Trust.UNTRUSTED


# ---- Percepts ----


async def test_each_percept_is_an_event_and_a_context() -> None:
    async with remembering() as (module, _):
        for event in ("bert", "message:bert", "message", "door/opened"):
            module.intentions.add(event, AtEvent(event=event))
        module.intentions.add("Milk", InContext(cue="grocery shopping"))
        await module.observe(percept("I go grocery shopping."))
        assert sorted(await texts(module)) == ["Milk", "bert", "message", "message:bert"]
        signal = percept("It opened.", "door", kind=PerceptKind.SIGNAL, data={"name": "opened"})
        await module.observe(signal)
        assert "door/opened" in await texts(module)


async def test_percepts_that_a_resumed_run_observes_again_fire_nothing_again(
    tmp_path: Path,
) -> None:
    path, first, second = tmp_path / "dynamics.sqlite3", percept("One"), percept("Two")
    async with remembering(path) as (module, _):
        await act(module, REMIND_ACTION, text="Say hello", event="bert", again=True)
        await module.observe(first)
        await module.observe(second)
        await act(module, REMIND_ACTION, text="Ask for the key", event="bert")
        assert len(await module.take_percepts()) == 2
    async with remembering(path) as (module, _):  # it was killed, and continues its cycle
        await module.observe(first)
        await module.observe(second)
        assert await texts(module) == ["Say hello", "Say hello"]
        await module.observe(percept("Three"))
        assert sorted(await texts(module)) == ["Ask for the key", *["Say hello"] * 3]


async def test_a_module_without_times_leaves_them_to_another() -> None:
    async with remembering(times=False) as (module, clock):
        module.intentions.add("Tea", AtTime(at=clock.now()))
        assert await module.take_percepts() == []
        assert module.intentions.check() == 1
        assert await module.take_percepts() == []


async def test_the_proposal_shows_the_reminders_that_wait() -> None:
    async with remembering() as (module, clock):
        assert await module.contribute(Phase.PROPOSAL, PROPOSAL, 500) is None
        module.intentions.add("Stretch", AtTime(at=clock.now(), every=60))
        module.intentions.add("Milk", InContext(cue="shopping"), trust=Trust.UNTRUSTED)
        module.intentions.add("Key", AtEvent(event="bert", recurring=True))
        section = await module.contribute(Phase.PROPOSAL, PROPOSAL, 500)
        assert section is not None
        assert section.trust is Trust.UNTRUSTED
        for words in ("then every 60 s", "when shopping comes up", "each time bert happens"):
            assert words in section.text
        assert await module.contribute(Phase.REASONING, PROPOSAL, 500) is None


# ---- An agent ----


def agent_with(module: IntentionModule, *answers: str) -> tuple[CoagAgent, ScriptedModel]:
    model = scripted(*answers)
    return CoagAgent("ann", model, modules=[module], depth="compact", proposal="native"), model


async def take_turn(agent: CoagAgent, text: str = "Anything new?") -> None:
    message = TextMessage(content=text, source="user")
    await agent.on_messages([message], CancellationToken())


async def test_an_agent_perceives_a_reminder_once_also_over_a_restart(tmp_path: Path) -> None:
    clock, path = VirtualClock(), tmp_path / "dynamics.sqlite3"
    async with remembering(path, clock=clock) as (module, _):
        module.intentions.add("Water the plants", AtTime(at=clock.now() + HOUR))
        agent, model = agent_with(module, "No.")
        await take_turn(agent)
        assert "To be remembered now" not in model.requests[-1].text
    await clock.advance(3600)
    async with remembering(path, clock=clock) as (module, _):
        agent, model = agent_with(module, "Water the plants.", "No.")
        await take_turn(agent)
        assert "To be remembered now" in model.requests[-1].text
        assert await module.take_percepts() == []
        assert await module.intentions.unperceived("another") == []
    async with remembering(path, clock=clock) as (module, _):
        assert await module.take_percepts() == []


async def test_what_is_to_be_remembered_each_time_is_remembered_in_each_run(
    tmp_path: Path,
) -> None:
    for _ in range(3):
        async with remembering(tmp_path / "dynamics.sqlite3") as (module, _):
            module.intentions.add("Say hello", AtEvent(event="user", recurring=True))
            agent, model = agent_with(module, "No.")
            await take_turn(agent)
            assert "To be remembered now" in model.requests[-1].text


async def test_a_reminder_that_was_given_and_not_perceived_comes_again(tmp_path: Path) -> None:
    path = tmp_path / "dynamics.sqlite3"
    async with remembering(path) as (module, clock):
        module.intentions.add("Tea", AtTime(at=clock.now()))
        (given,) = await module.take_percepts()
        assert await module.take_percepts() == [given]
        await module.observe(given)  # perceived, and killed before the trace was flushed
        assert await module.take_percepts() == []
        state = module.save_state()
    async with remembering(path) as (module, _):
        assert await module.take_percepts() == [given]
        module.load_state(state)  # as of a trace that has it
        assert await module.take_percepts() == []
        module.reset_state()
        assert await module.intentions.unperceived("another") == [given]


# ---- An agent that is idle ----


class Interrupted(Intentions):
    """Its process is killed before it can end a reminder."""

    def perceived(self, percepts: Iterable[str]) -> None:
        del percepts


async def test_a_reminder_begins_an_activity_of_an_idle_agent_once_over_restarts(
    tmp_path: Path,
) -> None:
    clock = VirtualClock()
    dynamics = MemoryDynamics("plain", path=tmp_path / "dynamics.sqlite3", clock=clock)
    later = AtTime(at=clock.now() + HOUR)
    made = Intentions(dynamics).add("Look at the kettle", later, trust=Trust.UNTRUSTED)
    async with kitchen() as (workspace, _):
        lives = [(0, 0, Intentions), (1, 1, Interrupted), (5, 1, Intentions), (5, 1, Intentions)]
        for hours, activities, kind in lives:
            await clock.advance(3600 * hours)
            given = {"folder": tmp_path / "cook", "goals": [kind(dynamics)], "clock": clock}
            async with cook(scripted("Cold."), workspace, **given) as agent:
                await when_there_are(agent, activities)
                for one in agent.store.find():
                    assert one.id == f"remind-{made.id}-1"
                    assert "Look at the kettle" in one.goal
                    assert (one.source, one.trust) == ("intentions", Trust.UNTRUSTED)
                    assert (await agent.ended(one.id)).result == "Cold."
        assert await Intentions(dynamics).unperceived() == []
    dynamics.close()


async def test_an_agent_with_intentions_says_that_they_cannot_be_written_down() -> None:
    intentions = Intentions(MemoryDynamics("plain"))
    agent = SituatedAgent("cook", scripted("Cold."), [], goals=[intentions])
    with pytest.raises(ConfigurationError, match="Intentions among goals= cannot be written down"):
        agent.dump_component()
    await agent.close()

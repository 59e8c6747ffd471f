"""`CoagAgent` as an AutoGen agent: its events, its answer, its place in a team."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Response, TaskResult
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    HandoffMessage,
    TextMessage,
    ThoughtEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
    ToolCallSummaryMessage,
)
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.ui import Console
from autogen_core import CancellationToken
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_core.models import AssistantMessage, LLMMessage, UserMessage
from autogen_core.tools import FunctionTool, StaticWorkbench
from kits.brains import brain, respond
from pydantic import BaseModel

from coag import Bounds, CoagAgent, CoagContext, ScriptedModel, Verdict
from coag.context import rebuild
from coag.errors import ConfigurationError, ModelCallError
from coag.models import ScriptedReply, ScriptedRequest
from coag.schema import (
    PHASES,
    Candidate,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Section,
    Situation,
    SystemClock,
    Trust,
)

TOLD = "TERMINATE now"


async def look(where: str) -> str:
    """Looks somewhere."""
    return f"nothing in the {where}"


LOOK = ("look", '{"where": "hall"}')


def message(text: str = "Look around.", source: str = "user") -> TextMessage:
    return TextMessage(content=text, source=source)


async def turn(
    agent: CoagAgent, *messages: BaseChatMessage
) -> list[BaseAgentEvent | BaseChatMessage | Response]:
    stream = agent.on_messages_stream(messages or [message()], CancellationToken())
    return [item async for item in stream]


async def answer(agent: CoagAgent, text: str = "Look around.") -> BaseChatMessage:
    return (await agent.on_messages([message(text)], CancellationToken())).chat_message


# ---- one turn ----


async def test_it_needs_a_name_and_a_model_only() -> None:
    said = await answer(CoagAgent("assistant", brain(respond("Hello.")), proposal="json"))
    assert isinstance(said, TextMessage)
    assert (said.content, said.source) == ("Hello.", "assistant")
    assert said.metadata["ended_by"] == "respond"


async def test_the_response_comes_last_and_holds_what_was_streamed() -> None:
    items = await turn(
        CoagAgent("assistant", brain(LOOK, respond()), tools=[look], proposal="json")
    )
    *events, last = items
    assert isinstance(last, Response)
    assert last.inner_messages == events
    assert not any(isinstance(event, Response) for event in events)


async def test_every_phase_is_shown_by_a_stock_event() -> None:
    *events, _ = await turn(
        CoagAgent(
            "assistant", brain(LOOK, respond()), tools=[look], proposal="json", events="phases"
        )
    )
    kinds = {ThoughtEvent, ToolCallRequestEvent, ToolCallExecutionEvent}
    assert {type(event) for event in events} == kinds
    thoughts = [e for e in events if isinstance(e, ThoughtEvent)]
    phases = [thought.metadata["phase"] for thought in thoughts]
    assert phases == [p.value for p in PHASES[:-1]] + [p.value for p in PHASES]
    assert thoughts[3].content == "Evaluation: 1 of 1 candidate(s) survived."
    assert thoughts[4].content == "Selection: look, decided by only_survivor."


async def test_a_tools_call_and_return_are_stock_events_of_the_same_id() -> None:
    *events, _ = await turn(
        CoagAgent("assistant", brain(LOOK, respond()), tools=[look], proposal="json")
    )
    (request,) = (e for e in events if isinstance(e, ToolCallRequestEvent))
    (execution,) = (e for e in events if isinstance(e, ToolCallExecutionEvent))
    assert request.content[0].name == "look"
    assert execution.content[0].content == "nothing in the hall"
    assert request.content[0].id == execution.content[0].call_id


async def test_no_event_says_what_the_model_wrote_but_its_metadata_does() -> None:
    model = brain([("TERMINATE now", "{}"), respond()], situation=TOLD)
    *events, _ = await turn(CoagAgent("assistant", model, proposal="json", events="phases"))
    thoughts = [e for e in events if isinstance(e, ThoughtEvent)]
    assert "an unknown action" in thoughts[2].content
    assert not any("TERMINATE" in thought.to_text() for thought in thoughts)
    assert thoughts[1].metadata["detail"] == TOLD
    assert "TERMINATE now" in thoughts[2].metadata["detail"]


async def test_usage_in_the_events_is_all_that_the_client_used() -> None:
    model = brain([LOOK, respond()], respond())
    all_of = await turn(CoagAgent("assistant", model, tools=[look], proposal="json"))
    said = [one.chat_message if isinstance(one, Response) else one for one in all_of]
    used = [event.models_usage for event in said if event.models_usage is not None]
    assert sum(u.prompt_tokens for u in used) == model.total_usage().prompt_tokens
    assert sum(u.completion_tokens for u in used) == model.total_usage().completion_tokens


async def test_console_shows_the_deliberation(capsys: pytest.CaptureFixture[str]) -> None:
    agent = CoagAgent(
        "assistant", brain(LOOK, respond()), tools=[look], proposal="json", events="phases"
    )
    result = await Console(agent.run_stream(task="Look around."))
    assert isinstance(result, TaskResult)
    out = capsys.readouterr().out
    for phase in PHASES[:-1]:
        assert f"{phase.value.capitalize()}: " in out
    assert "nothing in the hall" in out
    assert "Done." in out


async def test_the_next_turn_remembers_the_one_before() -> None:
    model = brain(respond("Hello, Ada."), respond("Ada."))
    agent = CoagAgent("assistant", model, proposal="json")
    await answer(agent, "I am Ada.")
    await answer(agent, "Who am I?")
    assert agent.turn == 2
    text = model.requests[-1].text
    assert "I am Ada." in text
    assert "Hello, Ada." in text


async def test_only_the_users_words_carry_the_users_trust() -> None:
    agent = CoagAgent("assistant", brain(respond()), proposal="json")
    await turn(agent, message("Go.", "user"), message("No, stop.", "stranger"))
    said = agent.context.working_memory.dialogue
    assert [(u.source, u.trust.value) for u in said[:2]] == [
        ("user", "user"),
        ("stranger", "untrusted"),
    ]


async def test_what_a_handoff_carries_is_perceived_before_it() -> None:
    carried: list[LLMMessage] = [UserMessage(content="The door is red.", source="user")]
    handoff = HandoffMessage(
        content="Over to you.", source="clerk", target="assistant", context=carried
    )
    agent = CoagAgent("assistant", brain(respond()), proposal="json")
    await turn(agent, handoff)
    said = agent.context.working_memory.dialogue
    assert [u.content for u in said] == ["The door is red.", "Over to you.", "Done."]


async def test_compact_depth_asks_the_model_once_a_cycle() -> None:
    model = brain([LOOK, respond()], respond())
    agent = CoagAgent("assistant", model, tools=[look], depth="compact", proposal="json")
    said = await answer(agent)
    assert said.metadata["cycles"] == "2"
    assert model.calls == 2


async def test_a_workbench_brings_tools() -> None:
    bench = StaticWorkbench([FunctionTool(look, description="Looks.")])
    *events, _ = await turn(
        CoagAgent("assistant", brain(LOOK, respond()), workbench=bench, proposal="json")
    )
    (execution,) = (e for e in events if isinstance(e, ToolCallExecutionEvent))
    assert execution.content[0].content == "nothing in the hall"


# ---- AssistantAgent's arguments ----


async def test_one_tool_iteration_ends_with_a_summary_of_the_call() -> None:
    agent = CoagAgent(
        "assistant",
        brain(LOOK),
        tools=[look],
        max_tool_iterations=1,
        tool_call_summary_format="{tool_name}{arguments}: {result}",
        proposal="json",
    )
    said = await answer(agent)
    assert isinstance(said, ToolCallSummaryMessage)
    assert said.content == 'look{"where": "hall"}: nothing in the hall'
    assert said.metadata["ended_by"] == "actions"
    assert [call.name for call in said.tool_calls] == ["look"]
    assert [result.is_error for result in said.results] == [False]


async def test_a_formatter_decides_how_a_summary_reads() -> None:
    agent = CoagAgent(
        "assistant",
        brain(LOOK),
        tools=[look],
        max_tool_iterations=1,
        tool_call_summary_formatter=lambda call, result: f"{call.name}!",
        proposal="json",
    )
    assert (await answer(agent)).to_text() == "look!"


async def test_a_bound_ends_the_turn_with_its_reason() -> None:
    agent = CoagAgent(
        "assistant", brain(LOOK), tools=[look], bounds=Bounds(cycles=2), proposal="json"
    )
    said = await answer(agent)
    assert said.metadata["ended_by"] == "cycles"
    assert "nothing in the hall" in said.to_text()


def test_tools_and_a_workbench_together_are_refused() -> None:
    bench = StaticWorkbench([FunctionTool(look, description="Looks.")])
    with pytest.raises(ConfigurationError, match="tools or a workbench, not both"):
        CoagAgent("assistant", brain(respond()), tools=[look], workbench=bench, proposal="json")


def test_a_limit_below_one_is_refused_with_its_value() -> None:
    with pytest.raises(ValueError, match="greater than or equal to 1, got 0"):
        CoagAgent("assistant", brain(respond()), max_tool_iterations=0, proposal="json")


async def test_a_foreign_context_decides_what_is_shown_of_the_dialogue() -> None:
    model = brain(respond("one"), respond("two"), respond("three"))
    foreign = BufferedChatCompletionContext(buffer_size=1)
    agent = CoagAgent("assistant", model, model_context=foreign, proposal="json")
    for text in ("alpha", "beta"):
        await answer(agent, text)
    asked = model.requests[-1].last_user_text
    assert "beta" in asked
    assert "alpha" not in asked
    kept = await foreign.get_messages()
    assert [type(m) for m in kept] == [AssistantMessage]
    assert (await agent.context.get_messages()) == kept


async def test_a_context_of_the_domain_is_used_as_it_is() -> None:
    context = CoagContext[Any](activity="scouting")
    agent = CoagAgent("assistant", brain(respond()), model_context=context, proposal="json")
    await answer(agent)
    assert agent.model_context is context


# ---- constraints ----


def no_looking(candidate: Candidate, state: Any, projection: Any) -> Verdict:
    return Verdict.forbid("eyes shut") if candidate.action == "look" else Verdict.allow()


async def test_a_constraint_is_stronger_than_the_model() -> None:
    agent = CoagAgent(
        "assistant",
        brain([LOOK, respond()]),
        tools=[look],
        constraints=[no_looking],
        proposal="json",
        events="phases",
    )
    *events, last = await turn(agent)
    assert isinstance(last, Response)
    assert last.chat_message.to_text() == "Done."
    rejected = [e.to_text() for e in events if not isinstance(e, Response)]
    assert any("look rejected by no_looking" in text for text in rejected)


async def test_a_constraint_that_is_added_while_running_holds_from_the_next_cycle() -> None:
    looked: list[str] = []

    async def peek() -> str:
        """Looks, once."""
        looked.append("peek")
        agent.constraints.add(no_peeking)
        return "a wall"

    def no_peeking(candidate: Candidate, state: Any, projection: Any) -> Verdict:
        return Verdict.forbid("once only") if candidate.action == "peek" else Verdict.allow()

    agent = CoagAgent(
        "assistant", brain([("peek", "{}"), respond()]), tools=[peek], proposal="json"
    )
    said = await answer(agent)
    assert said.to_text() == "Done."
    assert looked == ["peek"]
    pinned = [
        r.constraints for r in agent.trace if r.record == "outcome" and r.phase == "retrieval"
    ]
    assert pinned == [(), ("no_peeking",)]


# ---- teams ----


async def test_it_works_in_a_team_with_a_stock_agent() -> None:
    clerk = AssistantAgent("clerk", ScriptedModel(lambda request: "Noted. TERMINATE"))
    scout = CoagAgent(
        "scout",
        brain(LOOK, respond("The hall is empty."), situation="TERMINATE?"),
        tools=[look],
        proposal="json",
    )
    stop = TextMentionTermination("TERMINATE") | MaxMessageTermination(50)
    team = RoundRobinGroupChat([scout, clerk], termination_condition=stop)
    result = await team.run(task="Look around.")
    said = [m for m in result.messages if isinstance(m, TextMessage)]
    assert [(m.source, m.content) for m in said] == [
        ("user", "Look around."),
        ("scout", "The hall is empty."),
        ("clerk", "Noted. TERMINATE"),
    ]


async def test_in_a_team_it_hears_the_others() -> None:
    clerk = AssistantAgent("clerk", ScriptedModel(lambda request: "The key is blue."))
    model = brain(respond("What colour?"), respond("Blue. TERMINATE"))
    scout = CoagAgent("scout", model, proposal="json")
    team = RoundRobinGroupChat(
        [scout, clerk], termination_condition=TextMentionTermination("TERMINATE")
    )
    result = await team.run(task="Ask for the key.")
    assert result.messages[-1].to_text() == "Blue. TERMINATE"
    assert "clerk: The key is blue." in model.requests[-1].text


# ---- cancellation and errors ----


async def test_cancelled_before_it_begins_nothing_has_happened() -> None:
    agent = CoagAgent("assistant", brain(respond()), proposal="json")
    token = CancellationToken()
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await agent.on_messages([message()], token)
    assert (agent.turn, agent.trace) == (0, ())
    assert agent.context.working_memory.dialogue == ()
    assert (await answer(agent)).to_text() == "Done."


async def test_the_token_cancels_a_tool_and_the_next_turn_works() -> None:
    reached = asyncio.Event()

    async def dig() -> str:
        """Digs for ever."""
        reached.set()
        await asyncio.Event().wait()
        return "never"

    agent = CoagAgent("assistant", brain(("dig", "{}"), respond()), tools=[dig], proposal="json")
    token = CancellationToken()
    task = asyncio.create_task(agent.on_messages([message("Dig.")], token))
    await reached.wait()
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    ends = [record.reason for record in agent.trace if record.record == "turn_end"]
    assert ends == ["cancelled"]
    assert (await answer(agent, "And now?")).to_text() == "Done."


async def test_the_token_cancels_a_model_that_thinks() -> None:
    reached = asyncio.Event()

    async def ponder(_request: Any) -> str:
        reached.set()
        await asyncio.Event().wait()
        return "never"

    agent = CoagAgent("assistant", ScriptedModel(ponder), proposal="json")
    token = CancellationToken()
    task = asyncio.create_task(agent.on_messages([message()], token))
    await reached.wait()
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not agent.context.working_memory.in_cycle


async def test_a_reader_who_leaves_early_leaves_a_whole_cycle() -> None:
    agent = CoagAgent("assistant", brain(LOOK, respond()), tools=[look], proposal="json")
    stream = agent.on_messages_stream([message()], CancellationToken())
    async for _ in stream:
        break
    await stream.aclose()
    assert not agent.context.working_memory.in_cycle
    assert (await answer(agent)).metadata["ended_by"] == "respond"


async def test_a_model_that_cannot_be_asked_is_an_error_and_the_next_turn_works() -> None:
    model = brain(respond())
    broken = ScriptedModel(refuse_once(model))
    agent = CoagAgent("assistant", broken, proposal="json")
    with pytest.raises(ModelCallError, match="no line"):
        await answer(agent)
    assert (await answer(agent)).to_text() == "Done."


def refuse_once(model: ScriptedModel) -> Any:
    refused: list[bool] = []

    async def reply(request: Any) -> Any:
        if not refused:
            refused.append(True)
            raise ConnectionError("no line")
        extra = dict(request.extra)
        return await model.create(request.messages, extra_create_args=extra)

    return reply


async def test_an_unusable_answer_is_asked_for_again_and_then_noted() -> None:
    def prose(request: ScriptedRequest) -> ScriptedReply:
        return "I would rather talk."

    model = ScriptedModel(prose)
    agent = CoagAgent(
        "assistant", model, depth="compact", bounds=Bounds(impasses=1), proposal="json"
    )
    *events, last = await turn(agent)
    assert isinstance(last, Response)
    assert last.chat_message.metadata["ended_by"] == "impasses"
    (note,) = (r for r in agent.trace if r.record == "note" and r.about == "fallback")
    assert "no usable answer" in note.text
    said = [*events, last.chat_message]
    used = [e.models_usage for e in said if not isinstance(e, Response) and e.models_usage]
    assert sum(u.prompt_tokens for u in used) == model.total_usage().prompt_tokens


async def test_a_repaired_answer_is_noted() -> None:
    plan = '{"situation": "so", "risks": [], "goal_status": "open", "candidates": [%s]}'
    fenced = plan % '{"action": "respond", "arguments": "{\\"text\\": \\"Hi.\\"}", "score": 1}'

    def fence(request: ScriptedRequest) -> ScriptedReply:
        return f"Sure:\n```json\n{fenced}\n```"

    agent = CoagAgent("assistant", ScriptedModel(fence), depth="compact", proposal="json")
    assert (await answer(agent)).to_text() == "Hi."
    (note,) = (r for r in agent.trace if r.record == "note" and r.about == "repair")
    assert note.details["raw"].startswith("Sure:")


class Grumbler:
    """A module that cannot do anything."""

    name = "grumbler"

    async def observe(self, event: Percept | Outcome) -> None:
        raise OSError("no")

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        return None

    def save_state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        return None


async def test_a_module_that_fails_is_named_in_the_answer_and_noted() -> None:
    agent = CoagAgent("assistant", brain(respond()), modules=[Grumbler()], proposal="json")
    said = await answer(agent)
    assert said.metadata["failed_modules"] == "grumbler"
    notes = [r.text for r in agent.trace if r.record == "note" and r.about == "module"]
    assert notes[0] == "Module grumbler was left out: observe raised OSError: no."


# ---- what stays behind ----


async def test_a_bare_agent_writes_nothing_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent = CoagAgent("assistant", brain(LOOK, respond()), tools=[look], proposal="json")
    await answer(agent)
    await agent.close()
    assert os.listdir(tmp_path) == []


async def test_closing_twice_does_no_harm(tmp_path: Path) -> None:
    agent = CoagAgent(
        "assistant", brain(respond()), logs=tmp_path, memory=tmp_path / "memory", proposal="json"
    )
    await answer(agent)
    await agent.close()
    kept = agent.trace
    await agent.close()
    assert agent.trace == kept


async def test_closing_before_the_first_turn_does_no_harm() -> None:
    agent = CoagAgent("assistant", brain(respond()), proposal="json")
    await agent.close()
    assert agent.turn == 0


# ---- sensors ----


async def test_a_percept_between_turns_is_recorded_and_changes_the_state() -> None:
    class Door(BaseModel):
        open: bool | None = None

    class Hall(CoagContext[Door]):
        @property
        def perceptual_state_schema(self) -> type[Door]:
            return Door

        def _update_state_from_percept(self, state: Door, percept: Percept) -> Door:
            return Door(open=percept.data)

    agent = CoagAgent("porter", brain(respond()), model_context=Hall(), proposal="json")
    start = agent.context.working_memory
    moved = Percept(
        id="door-1",
        at=SystemClock().now(),
        kind=PerceptKind.PROPERTY_CHANGE,
        source="door",
        trust=Trust.UNTRUSTED,
        content="The door is open.",
        data=True,
    )

    await agent.perceive(moved)

    assert agent.context.state == Door(open=True)
    assert rebuild(start, agent.trace) == agent.context.working_memory


def test_a_context_class_in_place_of_a_context_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"takes a context, e.g. CoagContext\(\), not"):
        CoagAgent("a", brain(), model_context=CoagContext, proposal="json")  # pyright: ignore[reportArgumentType] - the point


def test_a_misspelt_argument_is_named_with_those_that_exist() -> None:
    with pytest.raises(TypeError, match=r"no argument 'constraint'.*constraints.*depth"):
        CoagAgent("a", brain(), constraint=[], proposal="json")  # pyright: ignore[reportCallIssue] - the point

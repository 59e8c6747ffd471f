"""A thread with our agents in it holds what one with AssistantAgents holds, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent, UserProxyAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    ModelClientStreamingChunkEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
)
from autogen_agentchat.teams import SelectorGroupChat
from autogen_agentchat.ui import Console
from autogen_core import FunctionCall
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import AssistantMessage, FunctionExecutionResultMessage

from coag import CoagAgent, ScriptedModel
from coag.models import scripted_answers

Make = Callable[..., Any]
Item = BaseAgentEvent | BaseChatMessage
CALL = FunctionCall(id="call_7", name="add", arguments='{"left": 2, "right": 3}')


def ours(name: str, model: ScriptedModel, **given: Any) -> CoagAgent:
    return CoagAgent(name, model, depth="compact", proposal="native", **given)


both = pytest.mark.parametrize("make", [AssistantAgent, ours])


def add(left: int, right: int) -> int:
    """Adds."""
    return left + right


def script(*answers: Any) -> ScriptedModel:
    return ScriptedModel(scripted_answers(answers))


def kinds(messages: Sequence[Item]) -> list[tuple[str, str]]:
    return [(type(one).__name__, one.source) for one in messages]


CASES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "a text": (("Hello.",), {}),
    "a text in pieces": (("Hello there.",), {"model_client_stream": True}),
    "a tool and an answer": (([CALL], "Five."), {"tools": [add], "reflect_on_tool_use": True}),
    "a tool and its summary": (([CALL],), {"tools": [add], "reflect_on_tool_use": False}),
    "two rounds": (([CALL], [CALL], "Ten."), {"tools": [add], "max_tool_iterations": 3}),
    "a handoff": (
        ([FunctionCall(id="h", name="transfer_to_bob", arguments="{}")],),
        {"handoffs": ["bob"]},
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_messages_are_of_the_same_kinds_in_the_same_order(case: str) -> None:
    answers, given = CASES[case]

    async def shown(make: Make) -> list[tuple[str, str]]:
        stream = make("ann", script(*answers), **given).run_stream(task="2 + 3?")
        items = [item async for item in stream if not isinstance(item, TaskResult)]
        return [one for one in kinds(items) if one[0] != ModelClientStreamingChunkEvent.__name__]

    assert await shown(ours) == await shown(AssistantAgent)


@both
async def test_calls_keep_the_ids_that_the_model_gave_them(make: Make) -> None:
    agent = make("ann", script([CALL], "Five."), tools=[add], reflect_on_tool_use=True)
    messages = (await agent.run(task="2 + 3?")).messages
    (asked,) = [m for m in messages if isinstance(m, ToolCallRequestEvent)]
    (ran,) = [m for m in messages if isinstance(m, ToolCallExecutionEvent)]
    assert [one.id for one in asked.content] == ["call_7"]
    assert [one.call_id for one in ran.content] == ["call_7"]


async def test_two_calls_of_one_id_have_a_result_each() -> None:
    model = script([CALL, CALL.__class__(id="call_7", name="add", arguments=CALL.arguments)], "5")
    messages = (await ours("ann", model, tools=[add]).run(task="2 + 3?")).messages
    (asked,) = [m for m in messages if isinstance(m, ToolCallRequestEvent)]
    (ran,) = [m for m in messages if isinstance(m, ToolCallExecutionEvent)]
    assert len({one.id for one in asked.content}) == 2
    assert [one.id for one in asked.content] == [one.call_id for one in ran.content]


@both
async def test_usage_is_on_calls_and_answers_and_adds_up(make: Make) -> None:
    model = script([CALL], "Five.")
    agent = make("ann", model, tools=[add], reflect_on_tool_use=True)
    messages = (await agent.run(task="2 + 3?")).messages
    used = [type(m).__name__ for m in messages if m.models_usage is not None]
    assert used == ["ToolCallRequestEvent", "TextMessage"]
    prompt = sum(m.models_usage.prompt_tokens for m in messages if m.models_usage is not None)
    assert prompt == model.total_usage().prompt_tokens


@both
async def test_a_selector_function_with_a_user_proxy_asks_once(make: Make) -> None:
    asked: list[str] = []
    seen: list[int] = []

    def person(prompt: str) -> str:
        asked.append(prompt)
        return "APPROVE"

    def select(messages: Sequence[Item]) -> str | None:
        seen.append(len(messages))
        if messages[-1].source == "user":
            return "planner"
        return "person" if messages[-1].source == "planner" else "planner"

    planner = make("planner", script("A plan.", "Done as planned. TERMINATE"))
    team = SelectorGroupChat(
        [planner, UserProxyAgent("person", input_func=person)],
        model_client=script(),
        selector_func=select,
        termination_condition=TextMentionTermination("TERMINATE") | MaxMessageTermination(12),
    )
    await team.run(task="Plan something.")
    assert len(asked) == 1
    assert seen[:2] == [1, 2]


@both
@pytest.mark.parametrize("streams", [False, True])
async def test_a_console_prints_an_answer_once_and_untorn(
    make: Make, streams: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = make("ann", script("Two and three make five."), model_client_stream=streams)
    await Console(agent.run_stream(task="2 + 3?"))
    printed = capsys.readouterr().out
    assert printed.count("Two and three make five.") == 1
    headings = [line for line in printed.splitlines() if line.startswith("-----")]
    assert len(headings) == 2


async def test_phases_are_shown_where_they_are_asked_for() -> None:
    agent = ours("ann", script("Hello."), events="phases")
    messages = (await agent.run(task="Hi.")).messages
    phases = [m.metadata["phase"] for m in messages if "phase" in m.metadata]
    assert phases[:2] == ["retrieval", "reasoning"]
    with pytest.raises(ValueError, match="events takes 'stock' or 'phases', not 'all'"):
        ours("ann", script(), events="all")


@both
async def test_a_given_context_holds_calls_results_and_answers(make: Make) -> None:
    given = UnboundedChatCompletionContext()
    model = script([CALL], "Five.", "As I said.")
    agent = make("ann", model, tools=[add], model_context=given, reflect_on_tool_use=True)
    await agent.run(task="2 + 3?")
    _, called, brought, answer = await given.get_messages()
    assert isinstance(called, AssistantMessage)
    assert called.content == [CALL]
    assert isinstance(brought, FunctionExecutionResultMessage)
    assert [(one.call_id, one.content) for one in brought.content] == [("call_7", "5")]
    assert (answer.content, getattr(answer, "source", "")) == ("Five.", "ann")
    await agent.run(task="Again?")
    assert model.requests[-1].text.count("2 + 3?") == 1

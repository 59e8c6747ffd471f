"""In every team of AutoGen, alone and beside stock agents, and behind a core agent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from autogen_agentchat.agents import (
    AssistantAgent,
    SocietyOfMindAgent,
)
from autogen_agentchat.conditions import (
    FunctionCallTermination,
    MaxMessageTermination,
    SourceMatchTermination,
    TextMentionTermination,
    TextMessageTermination,
    TokenUsageTermination,
)
from autogen_agentchat.messages import ToolCallExecutionEvent
from autogen_agentchat.teams import (
    MagenticOneGroupChat,
    RoundRobinGroupChat,
)
from autogen_agentchat.tools import AgentTool, TeamTool
from autogen_core import (
    AgentId,
    MessageContext,
    RoutedAgent,
    SingleThreadedAgentRuntime,
    message_handler,
)
from kits.drop_in import WAYS, add, items_and_result, run, text_message, way_name, within
from kits.planned import PlannedModel

from coag import CoagAgent

all_ways = pytest.mark.parametrize("way", WAYS, ids=way_name)


def agent(name: str, answer: str = "", *plan: Any, **given: Any) -> CoagAgent:
    return CoagAgent(name, PlannedModel(answer or f"{name}-says", *plan), **given)


def sources(result: Any) -> list[str]:
    return [m.source for m in result.messages if hasattr(m, "to_model_message")]


@all_ways
@pytest.mark.parametrize("other", [CoagAgent, AssistantAgent])
async def test_round_robin(way: dict[str, Any], other: Any) -> None:
    model, second = PlannedModel("ONE", ("add", {"a": 1, "b": 2})), PlannedModel("TWO")
    one, two = CoagAgent("one", model, tools=[add], **way), other("two", second)
    result = await within(RoundRobinGroupChat([one, two], max_turns=4).run(task="Go."))
    assert sources(result) == ["user", "one", "two", "one", "two"]
    assert "ONE" in second.heard
    assert "TWO" in model.heard
    assert model.violations == second.violations == []


LEDGER = {
    "is_request_satisfied": {"reason": "r", "answer": False},
    "is_progress_being_made": {"reason": "r", "answer": True},
    "is_in_loop": {"reason": "r", "answer": False},
    "instruction_or_question": {"reason": "r", "answer": "Do it."},
    "next_speaker": {"reason": "r", "answer": "one"},
}


async def test_magentic_one_leads_it() -> None:
    done = {**LEDGER, "is_request_satisfied": {"reason": "r", "answer": True}}
    ledgers = iter([json.dumps(LEDGER), json.dumps(done)])

    class Leader(PlannedModel):
        def _content(self, asked: Any, form: str | None) -> str:
            return next(ledgers) if asked.kind == "json" else "PLAN"

    worker = PlannedModel("WORKED")
    team = MagenticOneGroupChat([CoagAgent("one", worker)], Leader(), max_turns=5)
    result = await within(team.run(task="token-8"))
    assert "one" in sources(result)
    assert "Do it." in worker.heard


async def test_it_is_a_tool_and_has_agents_and_teams_as_tools() -> None:
    team = RoundRobinGroupChat([agent("a"), agent("b")], max_turns=2)
    duo = TeamTool(team, name="duo", description="d", return_value_as_last_message=True)
    single = AgentTool(agent("single"), return_value_as_last_message=True)
    plan = [("duo", {"task": "token-1"}), ("single", {"task": "token-2"})]
    for outer in (CoagAgent, AssistantAgent):
        given: dict[str, Any] = {} if outer is CoagAgent else {"max_tool_iterations": 3}
        one = outer("outer", PlannedModel("OUTER", *plan), tools=[duo, single], **given)
        result = await within(one.run(task="Go."))
        events = [m for m in result.messages if isinstance(m, ToolCallExecutionEvent)]
        own = [r.content for m in events if m.source == "outer" for r in m.content]
        assert own == ["b-says", "single-says"]


async def test_a_society_of_mind_is_made_of_it() -> None:
    inner = RoundRobinGroupChat([agent("a"), agent("b")], max_turns=2)
    society = SocietyOfMindAgent("som", team=inner, model_client=PlannedModel("SOM"))
    for _ in range(2):
        result = await within(society.run(task="Go."))
        assert result.messages[-1].to_text() == "SOM"


SUM = ("add", {"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("condition", "plan", "why"),
    [
        (lambda: TextMentionTermination("FINAL", sources=["a"]), [], "mentioned"),
        (lambda: SourceMatchTermination(["a"]), [], "answered"),
        (lambda: TextMessageTermination("a"), [], "Text message received"),
        (lambda: TokenUsageTermination(max_total_token=1), [], "Token usage limit"),
        (lambda: FunctionCallTermination("add"), [SUM], "was executed"),
        (lambda: MaxMessageTermination(2), [SUM], "Maximum number of messages"),
    ],
)
async def test_terminations_see_what_they_look_for(condition: Any, plan: Any, why: str) -> None:
    one = agent("a", "FINAL", *plan, tools=[add])
    team = RoundRobinGroupChat([one], termination_condition=condition(), max_turns=5)
    result = await within(team.run(task="Go."))
    assert why in str(result.stop_reason)
    assert sources(result) == ["user", "a"]


async def test_a_runtime_from_outside_serves() -> None:
    runtime = SingleThreadedAgentRuntime()
    runtime.start()
    team = RoundRobinGroupChat([agent("a")], max_turns=1, runtime=runtime)
    assert sources(await within(team.run(task="Go."))) == ["user", "a"]
    await runtime.stop()


# ---- core ----


@dataclass
class Question:
    """What a core agent is asked."""

    text: str


class Wrapper(RoutedAgent):
    """A core agent around ours."""

    def __init__(self, inner: CoagAgent) -> None:
        super().__init__("Wraps.")
        self._inner = inner

    @message_handler
    async def on_question(self, message: Question, ctx: MessageContext) -> Question:
        messages = [text_message(message.text)]
        response = await self._inner.on_messages(messages, ctx.cancellation_token)
        return Question(response.chat_message.to_text())


async def test_a_core_agent_may_wrap_it() -> None:
    runtime = SingleThreadedAgentRuntime()
    model = PlannedModel("FINAL", ("add", {"a": 1, "b": 2}))
    inner = CoagAgent("inner", model, tools=[add])
    await Wrapper.register(runtime, "wrapper", lambda: Wrapper(inner))
    runtime.start()
    for text in ("One.", "Two."):
        sent = runtime.send_message(Question(text), AgentId("wrapper", "default"))
        assert (await within(sent)).text == "FINAL"
        assert text in model.heard
    await runtime.stop_when_idle()
    assert model.violations == []


async def test_in_a_team_its_metadata_says_how_the_turn_ended() -> None:
    team = RoundRobinGroupChat([agent("a")], max_turns=1)
    result = await within(team.run(task="Go."))
    assert result.messages[-1].metadata["ended_by"] == "respond"
    assert sources(await within(team.run())) == ["a"]  # a team may continue without a task


async def test_alone_and_in_a_team_it_shows_the_same() -> None:
    def one() -> CoagAgent:
        return agent("a", "one two three", SUM, tools=[add], model_client_stream=True)

    alone = await run(one(), "Go.")
    team = RoundRobinGroupChat([one()], max_turns=1)
    _, result = await items_and_result(team.run_stream(task="Go."))
    assert [type(m) for m in result.messages] == [type(m) for m in alone.messages]

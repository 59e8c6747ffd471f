"""Where tool calls of one answer fare differently from AssistantAgent's; see drop-in.md."""

from __future__ import annotations

from autogen_agentchat.base import TaskResult
from autogen_agentchat.messages import ToolCallExecutionEvent
from autogen_agentchat.tools import AgentTool
from autogen_core import FunctionCall

from coag import CoagAgent, ScriptedModel
from coag.models import ScriptedReply, ScriptedRequest, scripted_answers


def call(name: str, arguments: str, number: int = 1) -> FunctionCall:
    return FunctionCall(id=str(number), name=name, arguments=arguments)


def results(result: TaskResult) -> list[tuple[bool, str]]:
    events = [m for m in result.messages if isinstance(m, ToolCallExecutionEvent)]
    return [(bool(one.is_error), one.content) for event in events for one in event.content]


def outer(answers: list[ScriptedReply | Exception], *, parallel: bool) -> CoagAgent:
    def inner(request: ScriptedRequest) -> str:
        return f"heard {request.last_user_text[-200:].count('Task')}"

    asked = CoagAgent("inner", ScriptedModel(inner), depth="compact")
    model = ScriptedModel(scripted_answers(answers))
    return CoagAgent("outer", model, tools=[AgentTool(asked)], depth="compact", parallel=parallel)


CALLS = [call("inner", '{"task": "A"}'), call("inner", '{"task": "B"}', 2)]


async def test_an_agent_called_twice_in_one_answer_serves_the_first_call() -> None:
    done = results(await outer([CALLS, "Done."], parallel=True).run(task="Both."))
    assert [failed for failed, _ in done] == [False, True]
    assert "TurnInProgressError" in done[1][1]


async def test_without_parallel_calls_no_turn_meets_another() -> None:
    agent = outer([CALLS, CALLS[1:], "Done."], parallel=False)
    done = results(await agent.run(task="Both."))
    assert not [text for _, text in done if "TurnInProgressError" in text]


async def test_a_text_in_place_of_a_number_is_rejected_with_the_reason() -> None:
    ran: list[int] = []

    def add(left: int) -> int:
        """Adds."""
        ran.append(left)
        return left

    model = ScriptedModel(scripted_answers([[call("add", '{"left": "2"}')], "Done."]))
    agent = CoagAgent("a", model, tools=[add], depth="compact")
    done = results(await agent.run(task="Add."))
    assert ran == []
    assert [failed for failed, _ in done] == [True]
    assert "'2' is not of type 'integer'" in done[0][1]

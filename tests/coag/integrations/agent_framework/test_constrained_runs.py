"""Rules of stock agents where runs wait, overlap, are cancelled, or are part of a workflow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Literal

import pytest
from agent_framework import Agent, Content, FunctionTool, Message, tool
from kits.maf_client import Answer, AnsweringClient, call
from kits.purses import PurseContext, within_ten

from coag.integrations.agent_framework import ConstrainedMiddleware

Mode = Literal["always_require", "never_require"]


def shop(mode: Mode = "never_require") -> tuple[list[int], FunctionTool]:
    bought: list[int] = []

    async def buy(price: int) -> str:
        await asyncio.sleep(0)
        bought.append(price)
        return json.dumps({"price": price})

    return bought, tool(buy, name="buy", approval_mode=mode)


def buyer(buy: FunctionTool, *answers: Answer, **more: Any) -> Agent[Any]:
    guard = ConstrainedMiddleware([within_ten], context=PurseContext, **more)
    return Agent(AnsweringClient(*answers), name="buyer", tools=[buy], middleware=[guard])


async def test_rules_given_to_a_client_hold_for_its_agents() -> None:
    bought, buy = shop()
    guard = ConstrainedMiddleware([within_ten], context=PurseContext)
    both = [call(1, "buy", price=6), call(2, "buy", price=5)]
    agent = Agent(AnsweringClient(both, "One.", middleware=[guard]), tools=[buy])
    await agent.run("Buy.", session=agent.create_session())
    assert bought == [6]


async def test_runs_without_a_session_share_one_state() -> None:
    bought, buy = shop()
    agent = buyer(buy, [call(1, "buy", price=6)], "One.", [call(1, "buy", price=6)], "None.")
    await agent.run("Buy.")
    await agent.run("Buy.")
    assert bought == [6]


async def test_two_runs_of_a_session_at_once_spend_no_more_than_one() -> None:
    bought, buy = shop()
    agent = buyer(buy, [call(1, "buy", price=6)], [call(2, "buy", price=6)], "One.", "None.")
    session = agent.create_session()
    await asyncio.gather(agent.run("Buy.", session=session), agent.run("Buy.", session=session))
    assert bought == [6]


@pytest.mark.parametrize("yes", [True, False])
async def test_calls_that_a_person_allowed_are_judged_once_more(yes: bool) -> None:
    bought, buy = shop("always_require")
    agent = buyer(buy, [call(1, "buy", price=6), call(2, "buy", price=6)], "Done.")
    session = agent.create_session()
    response = await agent.run("Buy.", session=session)
    asked = response.user_input_requests
    assert len(asked) == 2  # each would pass by itself

    answers = Message("user", [one.to_function_approval_response(yes) for one in asked])
    response = await agent.run(answers, session=session)
    assert bought == ([6] if yes else [])
    assert response.text == "Done."


async def test_a_person_is_asked_by_our_policy_too() -> None:
    bought, buy = shop()
    approve: Callable[[Any], bool] = lambda request: request.arguments["price"] < 5  # noqa: E731
    both = [call(1, "buy", price=6), call(2, "buy", price=4)]
    agent = buyer(buy, both, "One.", approve=approve)
    await agent.run("Buy.", session=agent.create_session())
    assert bought == [4]


async def test_a_call_that_is_cancelled_is_of_unknown_outcome() -> None:
    begun = asyncio.Event()

    async def wait() -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    guard = ConstrainedMiddleware([within_ten], context=PurseContext)
    client = AnsweringClient([call(1, "wait")], [call(2, "wait")], "I do not know.")
    agent = Agent(client, tools=[tool(wait, name="wait")], middleware=[guard])
    session = agent.create_session()

    running = asyncio.ensure_future(agent.run("Go.", session=session))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (open_one,) = guard.guard(session).context.working_memory.unsettled
    assert open_one.action == "wait"


async def test_a_stream_that_nobody_reads_to_its_end_runs_nothing() -> None:
    bought, buy = shop()
    agent = buyer(buy, [Content.from_text("Well,"), call(1, "buy", price=6)], "Done.")
    stream = agent.run("Buy.", session=agent.create_session(), stream=True)
    async with stream:
        first = await anext(aiter(stream))
    assert first.text == "Well,"
    assert bought == []


async def test_a_workflow_asks_only_about_what_is_allowed() -> None:
    orchestrations = pytest.importorskip("agent_framework_orchestrations")
    bought, buy = shop("always_require")
    agent = buyer(buy, [call(1, "buy", price=11), call(2, "buy", price=3)], "Done.")
    workflow: Any = orchestrations.SequentialBuilder(participants=[agent]).build()

    (asked,) = (await workflow.run("Buy.")).get_request_info_events()
    yes = asked.data.to_function_approval_response(True)
    await workflow.run(responses={asked.request_id: yes})
    assert bought == [3]

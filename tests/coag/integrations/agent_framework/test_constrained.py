"""Rules around stock agents of the Agent Framework."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from agent_framework import (
    Agent,
    AgentResponse,
    AgentSession,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    Message,
    MiddlewareFailure,
    tool,
)
from kits.maf_client import Answer, AnsweringClient, call
from kits.purses import Purse, PurseContext, within_ten

from coag import Candidate, Verdict
from coag.compat import ScriptedApprover
from coag.cycle.only_trusted import OnlyTrusted
from coag.errors import ConfigurationError, UnknownNameError
from coag.integrations.agent_framework import ConstrainedMiddleware, set_label
from coag.policy import read_policy
from coag.proof import verify
from coag.schema import Constraint, Trust

Next = Callable[[], Awaitable[None]]


def broken(candidate: Candidate, state: Purse, projection: Purse | None) -> Verdict:
    raise KeyError("no such thing")


REFUSED = (
    "{name} was not run. The rule 'within_ten' forbids it: 6 of 10 are spent already. "
    "Nothing was done."
)


class Shop:
    """Tools that write down what was bought."""

    def __init__(self, approval: Literal["always_require", "never_require"] = "never_require"):
        self.bought: list[tuple[int, str]] = []

        async def buy(price: int, note: str = "none") -> str:
            await asyncio.sleep(0)
            self.bought.append((price, note))
            return json.dumps({"price": price})

        self.buy = tool(buy, name="buy", approval_mode=approval)


def agent(
    shop: Shop, *answers: Answer, rules: Any = (within_ten,), **more: Any
) -> tuple[Agent[Any], AnsweringClient, ConstrainedMiddleware]:
    guard = ConstrainedMiddleware(rules, context=PurseContext)
    client = AnsweringClient(*answers)
    middleware = [*more.pop("before", ()), guard, *more.pop("after", ())]
    return Agent(client, tools=[shop.buy], middleware=middleware, **more), client, guard


async def run(agent: Agent[Any], task: Any, session: AgentSession, stream: bool) -> AgentResponse:
    if stream:
        return await agent.run(task, session=session, stream=True).get_final_response()
    return await agent.run(task, session=session)


def results(response: AgentResponse) -> list[str]:
    contents = [one for message in response.messages for one in message.contents]
    return [str(one.result) for one in contents if one.type == "function_result"]


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_of_one_answer_are_judged_by_the_state_after_the_one_before(
    stream: bool,
) -> None:
    shop = Shop()
    both = [call(1, "buy", price=6), call(2, "buy", price=5)]
    buyer, _, guard = agent(shop, both, "Bought one.")
    session = buyer.create_session()

    response = await run(buyer, "Buy two.", session, stream)

    assert results(response) == ['{"price": 6}', REFUSED.format(name="buy")]
    assert shop.bought == [(6, "none")]
    assert guard.guard(session).context.state == Purse(spent=6)
    assert response.text == "Bought one."


async def test_a_typing_error_in_a_policy_file_forbids_what_it_would_let_pass() -> None:
    shop = Shop()
    text = "rules: [{name: a, tools: buy, needs_approval: has(arguments.pirce)}]"
    rules = read_policy(text)
    guard = ConstrainedMiddleware(rules, approve=ScriptedApprover([]))
    client = AnsweringClient([call(1, "buy", price=6)], "Not bought.")

    response = await Agent(client, tools=[shop.buy], middleware=[guard]).run("Buy one.")

    assert "did you mean 'price'?" in results(response)[0]
    assert shop.bought == []


@pytest.mark.parametrize("stream", [False, True])
async def test_nobody_is_asked_about_what_is_forbidden(stream: bool) -> None:
    shop = Shop("always_require")
    three = [call(1, "buy", price=11), call(2, "nothing", price=1), call(3, "buy", price=2)]
    buyer, _, _ = agent(shop, three, "Done.")
    session = buyer.create_session()

    response = await run(buyer, "Buy.", session, stream)
    (asked,) = response.user_input_requests
    answers = results(response)

    wanted = asked.function_call
    assert wanted is not None
    assert wanted.arguments == '{"price": 2, "note": "none"}'  # what it will be run with
    assert "within_ten" in answers[0]
    assert "there is no action 'nothing'" in answers[1]
    assert shop.bought == []

    saved = json.loads(json.dumps(session.to_dict()))
    yes = Message("user", [asked.to_function_approval_response(True)])
    response = await run(buyer, yes, AgentSession.from_dict(saved), stream)
    assert shop.bought == [(2, "none")]
    assert response.text == "Done."


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_whose_calls_are_all_forbidden_is_asked_again(stream: bool) -> None:
    shop = Shop("always_require")
    buyer, client, _ = agent(
        shop, [call(1, "buy", price=11)], [call(2, "nothing")], [call(3, "buy", price=3)]
    )

    response = await run(buyer, "Buy.", buyer.create_session(), stream)

    assert len(client.requests) == 3
    assert [one.role for one in client.requests[-1]] == [
        "user", "assistant", "tool", "assistant", "tool",
    ]  # fmt: skip
    assert len(response.user_input_requests) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_that_keeps_calling_what_is_forbidden_has_to_answer(stream: bool) -> None:
    calls = [[call(n, "nothing")] for n in range(1, 4)]
    buyer, client, _ = agent(Shop(), *calls, "I cannot.")

    response = await run(buyer, "Buy.", buyer.create_session(), stream)

    assert response.text == "I cannot."
    assert client.options[-1]["tool_choice"] == "none"
    assert len(results(response)) == 3


async def test_a_service_that_keeps_the_conversation_hears_of_every_refusal() -> None:
    shop = Shop()
    guard = ConstrainedMiddleware([within_ten], context=PurseContext)
    answer = [call(1, "buy", price=2), call(2, "nothing"), call(3, "buy", price=3)]
    client = AnsweringClient(answer, "Done.", conversation=True)
    buyer = Agent(client, tools=[shop.buy], middleware=[guard])

    await buyer.run("Buy.", session=buyer.create_session())

    contents = [one for message in client.requests[-1] for one in message.contents]
    assert {one.call_id for one in contents} == {"c1", "c2", "c3"}
    assert {one.type for one in contents} == {"function_result"}


@pytest.mark.parametrize("approval", ["always_require", "never_require"])
async def test_arguments_that_fail_the_schema_are_refused(
    approval: Literal["always_require", "never_require"],
) -> None:
    shop = Shop(approval)
    buyer, _, _ = agent(shop, [call(1, "buy", price="much")], "No.")

    response = await buyer.run("Buy.", session=buyer.create_session())

    assert "The rule 'arguments' forbids it" in results(response)[0]
    assert shop.bought == []
    assert not response.user_input_requests


@pytest.mark.parametrize("approval", ["always_require", "never_require"])
async def test_a_rule_that_raises_forbids(
    approval: Literal["always_require", "never_require"],
) -> None:
    shop = Shop(approval)
    buyer, _, _ = agent(shop, [call(1, "buy", price=1)], *["No."] * 4, rules=[broken])

    response = await buyer.run("Buy.", session=buyer.create_session())

    assert "the rule itself raised KeyError" in results(response)[0]
    assert shop.bought == []
    assert response.text == "The answer was withheld. The rule 'broken' forbids it."


async def test_a_guard_that_cannot_work_ends_the_run() -> None:
    shop = Shop()
    guard = ConstrainedMiddleware([within_ten], context=PurseContext)
    client = AnsweringClient([call(1, "buy", price=1)], "Never said.")
    buyer = Agent(client, tools=[shop.buy], middleware=[guard])
    session = buyer.create_session()
    session.state["coag_rules"] = {"context": "of something else"}

    with pytest.raises(Exception, match="context"):
        await buyer.run("Buy.", session=session)
    assert shop.bought == []
    assert client.answers[-1] == "Never said."


class Changes(FunctionMiddleware):
    """Middleware that changes what a tool is called with."""

    async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
        context.arguments = {**cast("dict[str, Any]", context.arguments), "price": 99}
        await call_next()


async def test_middleware_behind_ours_cannot_change_what_was_judged() -> None:
    shop = Shop()
    buyer, client, _ = agent(shop, [call(1, "buy", price=1)], "Never said.", after=[Changes()])

    with pytest.raises(MiddlewareFailure):
        await buyer.run("Buy.", session=buyer.create_session())
    assert shop.bought == []
    assert client.answers == ["Never said."]


async def test_middleware_of_the_run_cannot_change_what_was_judged() -> None:
    shop = Shop()
    buyer, _, _ = agent(shop, [call(1, "buy", price=1)], "Never said.")

    with pytest.raises(MiddlewareFailure):
        await buyer.run("Buy.", session=buyer.create_session(), middleware=[Changes()])
    assert shop.bought == []


async def test_what_middleware_before_ours_changes_is_judged() -> None:
    shop = Shop()
    buyer, _, _ = agent(shop, [call(1, "buy", price=1)], "No.", before=[Changes()])

    response = await buyer.run("Buy.", session=buyer.create_session())

    assert "0 of 10 are spent already" in results(response)[0]
    assert shop.bought == []


async def test_each_session_has_a_state_of_its_own_that_is_saved_with_it() -> None:
    shop = Shop()
    answers = [a for _ in range(3) for a in ([call(1, "buy", price=6)], "Done.")]
    buyer, _, guard = agent(shop, *answers)
    one, other = buyer.create_session(), buyer.create_session()

    await buyer.run("Buy.", session=one)
    await buyer.run("Buy.", session=other)
    assert [price for price, _ in shop.bought] == [6, 6]

    again = AgentSession.from_dict(json.loads(json.dumps(one.to_dict())))
    elsewhere, _, guard = agent(shop, [call(1, "buy", price=6)], "No.")
    response = await elsewhere.run("Buy.", session=again)
    assert results(response) == [REFUSED.format(name="buy")]
    assert guard.guard(again).context.state == Purse(spent=6)
    with pytest.raises(UnknownNameError):
        guard.guard(other)


async def test_one_context_can_serve_all_sessions() -> None:
    shop, context = Shop(), PurseContext()
    guard = ConstrainedMiddleware([within_ten], context=context)
    answers: list[Answer] = [[call(1, "buy", price=6)], "Done.", [call(1, "buy", price=6)], "No."]
    buyer = Agent(AnsweringClient(*answers), tools=[shop.buy], middleware=[guard])

    await buyer.run("Buy.", session=buyer.create_session())
    response = await buyer.run("Buy.", session=buyer.create_session())

    assert results(response) == [REFUSED.format(name="buy")]
    assert context.state == Purse(spent=6)


async def test_a_tool_that_the_host_runs_is_judged_in_the_answer() -> None:
    schema = {"type": "object", "properties": {"price": {"type": "integer"}}}
    pay = FunctionTool(name="pay", description="Pays.", func=None, input_model=schema)
    guard = ConstrainedMiddleware([within_ten], context=PurseContext)
    client = AnsweringClient([call(1, "pay", price=11)], [call(2, "pay", price=1)])
    buyer = Agent(client, tools=[pay], middleware=[guard])

    response = await buyer.run("Pay.", session=buyer.create_session())

    assert len(client.requests) == 2
    assert [one.call_id for one in response.user_input_requests] == ["c2"]


async def test_a_tool_that_raises_is_answered_by_the_framework() -> None:
    def fail() -> str:
        raise ValueError("secret detail")

    guard = ConstrainedMiddleware([within_ten], context=PurseContext)
    client = AnsweringClient([call(1, "fail")], "It failed.")
    agent = Agent(client, tools=[tool(fail)], middleware=[guard])

    response = await agent.run("Fail.", session=agent.create_session())

    assert "secret" not in results(response)[0]
    assert response.text == "It failed."


async def test_a_tool_that_is_late_has_an_unknown_outcome_and_is_not_repeated() -> None:
    started: list[int] = []

    async def slow() -> str:
        started.append(1)
        await asyncio.Event().wait()
        return "never"

    guard = ConstrainedMiddleware([within_ten], context=PurseContext, timeout=0.05)
    client = AnsweringClient([call(1, "slow")], [call(2, "slow")], "I do not know.")
    agent = Agent(client, tools=[tool(slow)], middleware=[guard])

    response = await agent.run("Go.", session=agent.create_session())

    assert started == [1]
    assert "Its outcome is unknown" in results(response)[0]
    assert "unsettled" in results(response)[1]


async def test_rules_can_judge_by_what_the_user_said_and_labels_are_kept() -> None:
    sent: list[str] = []

    def send(to: str) -> str:
        sent.append(to)
        return "sent"

    rule = cast("Constraint", OnlyTrusted("send", ("to",)))
    guard = ConstrainedMiddleware([rule])
    answers: list[Answer] = [
        [call(1, "send", to="ann@example.org")], "Sent.", [call(2, "send", to="eve@example.org")],
        "No.",
    ]  # fmt: skip
    agent = Agent(AnsweringClient(*answers), tools=[tool(send)], middleware=[guard])
    session = agent.create_session()

    await agent.run("Write to ann@example.org.", session=session)
    foreign = Message("user", ["Write to eve@example.org."])
    set_label(foreign, Trust.UNTRUSTED)
    response = await agent.run(foreign, session=session)

    assert sent == ["ann@example.org"]
    assert "only_trusted_send_to" in results(response)[0]


async def test_a_run_is_written_down_and_verifies(tmp_path: Path) -> None:
    shop = Shop("always_require")
    guard = ConstrainedMiddleware([within_ten], context=PurseContext, logs=tmp_path)
    answer = [call(1, "buy", price=11), call(2, "buy", price=2)]
    client = AnsweringClient(answer, [call(3, "buy", price=9)], "Done.")
    buyer = Agent(client, tools=[shop.buy], middleware=[guard])
    session = buyer.create_session()

    response = await buyer.run("Buy.", session=session)
    (asked,) = response.user_input_requests
    yes = Message("user", [asked.to_function_approval_response(True)])
    await buyer.run(yes, session=session)
    guard.close()

    folder = guard.guard(session).trace.folder.path
    kinds = [one.record for one in guard.guard(session).trace.records]
    assert kinds.count("intent") == kinds.count("receipt") == 1
    assert verify(folder) == []
    assert shop.bought == [(2, "none")]


def test_what_is_no_context_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="give a CoagContext"):
        ConstrainedMiddleware(context=cast("Any", lambda: 3))


def test_an_image_in_a_result_is_named_for_rules() -> None:
    from coag.integrations.agent_framework.guarded_tools import text_of

    image = Content.from_uri("data:image/png;base64,AAAA", media_type="image/png")
    assert text_of([Content.from_text("Here:"), image]) == "Here:\n[image]"


@pytest.mark.filterwarnings("ignore:.*experimental.*")
async def test_with_the_frameworks_own_labels_the_expanded_call_is_judged() -> None:
    from agent_framework.security import SecureAgentConfig

    prices: list[Any] = []

    def read() -> str:
        return "11"

    def spend(price: str) -> str:
        prices.append(price)
        return json.dumps({"price": int(price)})

    def eleven(candidate: Candidate, state: Any, projection: Any) -> Verdict:
        if (candidate.arguments or {}).get("price") == "11":
            return Verdict.forbid("eleven is too much")
        return Verdict.allow()

    rules = ConstrainedMiddleware([eleven])
    secure = SecureAgentConfig(allow_untrusted_tools={"spend", "read"})
    client = AnsweringClient([call(1, "read")], [call(2, "spend", price="7")], "Done.")
    tools = [tool(read), tool(spend)]
    agent = Agent(client, tools=tools, context_providers=[secure, rules.provider()])
    session = agent.create_session()

    await agent.run("Spend.", session=session)
    assert prices == ["7"]
    results = [one for m in client.requests[1] for one in m.contents if one.type != "text"]
    hidden = re.search(r"var_[0-9a-f]+", str(results[-1].result))
    assert hidden is not None
    client.answers[:] = [[call(3, "spend", price=f"[{hidden[0]}]")], "No."]
    await agent.run("Spend what was read.", session=session)

    assert prices == ["7"]
    noted = str(rules.guard(session).trace.records)
    assert "is forbidden by eleven: eleven is too much" in noted


@pytest.mark.filterwarnings("ignore:.*experimental.*")
async def test_a_provider_behind_ours_that_changes_calls_ends_the_run() -> None:
    from agent_framework.security import SecureAgentConfig

    shop = Shop()
    buyer, _, _ = agent(
        shop, [call(1, "buy", price=1)], "Never said.", context_providers=[SecureAgentConfig()]
    )
    with pytest.raises(MiddlewareFailure, match=r"provider\(\)"):
        await buyer.run("Buy.", session=buyer.create_session())

"""Our rules at the points of the agent-hooks contract."""

from __future__ import annotations

import importlib
import json
import warnings
from itertools import count
from typing import Any

import pytest
from kits.purses import PurseContext, within_ten

from coag.integrations import ConstraintInterceptor


class Host:
    """Emits points of a session as the contract's builder makes them."""

    def __init__(self, interceptor: ConstraintInterceptor) -> None:
        self._interceptor = interceptor
        self._numbers = count()

    async def at(self, point: str, session: str = "s", **fields: Any) -> dict[str, Any]:
        context = {
            "spec": "AGENT-HOOKS-0.1",
            "interception_point": point,
            "timestamp": "2026-01-01T00:00:00.0Z",
            "sequence": next(self._numbers),
            "agent": {"id": "a", "framework": "none"},
            "session": {"id": session},
            "target": None,
            **fields,
        }
        return await self._interceptor.intercept(json.loads(json.dumps(context)))

    async def before(self, number: int, price: Any, session: str = "s") -> dict[str, Any]:
        call = {"id": str(number), "name": "buy", "args": {"price": price}}
        return await self.at("pre_tool_call", session, tool_call=call)

    async def after(self, number: int, price: int, *, is_error: bool = False) -> dict[str, Any]:
        call = {"id": str(number), "name": "buy", "args": {"price": price}}
        result = {"value": {"price": price}, "is_error": is_error}
        return await self.at("post_tool_call", tool_call=call, tool_result=result)


ALLOWED = {"decision": "allow"}
DENIED = {
    "decision": "deny",
    "reason": "buy was not run. The rule 'within_ten' forbids it: 6 of 10 are spent already. "
    "Nothing was done.",
}


def host() -> Host:
    return Host(ConstraintInterceptor([within_ten], context=PurseContext))


async def test_a_call_is_judged_by_what_the_earlier_ones_brought() -> None:
    shop = host()
    assert await shop.at("agent_startup") == ALLOWED
    assert await shop.before(1, 6) == ALLOWED
    assert await shop.after(1, 6) == ALLOWED
    assert await shop.before(2, 5) == DENIED
    assert await shop.before(3, 4) == ALLOWED
    await shop.at("agent_shutdown")


async def test_a_second_call_is_denied_while_the_first_is_under_way() -> None:
    shop = host()
    assert await shop.before(1, 6) == ALLOWED
    denied = await shop.before(2, 1)
    assert denied["decision"] == "deny"
    assert "under way" in denied["reason"]
    await shop.at("pre_model_call", messages=[], tools=[])
    repeated = await shop.before(3, 6)
    assert "unsettled" in repeated["reason"]
    assert await shop.before(4, 1) == ALLOWED
    await shop.at("agent_shutdown")


async def test_arguments_that_fail_a_schema_are_denied_where_the_host_names_one() -> None:
    shop = host()
    schema = {"type": "object", "properties": {"price": {"type": "integer"}}}
    await shop.at("pre_model_call", messages=[], tools=[{"name": "buy", "parameters": schema}])
    denied = await shop.before(1, "much")
    assert denied["decision"] == "deny"
    assert "The rule 'arguments' forbids it" in denied["reason"]


async def test_sessions_are_kept_apart_and_forgotten_at_their_end() -> None:
    shop = host()
    await shop.before(1, 6)
    await shop.after(1, 6)
    assert await shop.before(1, 6, "another") == ALLOWED
    assert await shop.at("agent_shutdown") == ALLOWED
    assert await shop.before(2, 6) == ALLOWED
    await shop.at("agent_shutdown")
    await shop.at("agent_shutdown", "another")


async def test_the_contracts_own_emitter_takes_the_verdicts() -> None:
    hooks: Any = pytest.importorskip("agent_hooks")
    builder = hooks.AgentContextBuilder(agent_id="a", framework="none", session_id="s")
    emitter = hooks.InterceptionEmitter()
    emitter.register(ConstraintInterceptor([within_ten], context=PurseContext))

    bought = {"call_id": "1", "name": "buy", "args": {"price": 6}}
    await emitter.emit(builder.pre_tool_call(**bought))
    await emitter.emit(builder.post_tool_call(**bought, value={"price": 6}))
    with pytest.raises(hooks.InterceptionBlocked, match="within_ten"):
        await emitter.emit(builder.pre_tool_call(**{**bought, "call_id": "2"}))
    await emitter.emit(builder.agent_shutdown(reason="done"))


async def test_a_host_of_the_contract_blocks_by_our_rules() -> None:
    pytest.importorskip("agent_hooks")
    framework: Any = pytest.importorskip("agent_framework")
    client: Any = importlib.import_module("kits.maf_client")
    bought: list[int] = []

    def buy(price: int) -> str:
        bought.append(price)
        return json.dumps({"price": price})

    rules = ConstraintInterceptor([within_ten], context=PurseContext)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it is experimental
        hooks = framework.create_agent_hooks_middleware([rules])
        answers = [client.call(1, "buy", price=6)], [client.call(2, "buy", price=5)], "Done."
        model = client.AnsweringClient(*answers)
        agent = framework.Agent(model, tools=[framework.tool(buy)], middleware=[hooks])
        response = await agent.run("Buy two.")

    assert bought == [6]
    contents = [one for message in response.messages for one in message.contents]
    answers = [str(one.result) for one in contents if one.type == "function_result"]
    assert "6 of 10 are spent already" in answers[1]

"""Policy files in agents and workbenches: counted calls, approval, kills, batches, components."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from autogen_core import CancellationToken, FunctionCall
from autogen_core.tools import (
    FunctionTool,
    StaticWorkbench,
    TextResultContent,
    ToolResult,
    ToolSchema,
)

from coag import CoagAgent, ScriptedModel, tool
from coag.compat import ConstrainedWorkbench, ScriptedApprover, StatelessWorkbench
from coag.cycle import ApprovalPolicy
from coag.errors import ConfigurationError
from coag.models import scripted_answers
from coag.policy import Policy, read_policy
from coag.schema import Imported, Note
from coag.testing import assert_forbids
from coag.tracing import Recipe

PAID: list[float] = []


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    PAID.clear()


def pay(to: str, amount: float = 10.0) -> str:
    """Pays somebody."""
    PAID.append(amount)
    return "paid"


@tool(read_only=True)
def look(place: str) -> str:
    """Looks something up."""
    PAID.append(0)
    return "seen"


def policy(*rules: str) -> Policy:
    listed = "".join(f"  - {{name: rule_{n}, {rule}}}\n" for n, rule in enumerate(rules))
    return read_policy(f"rules:\n{listed}")


def wish(action: str, **arguments: Any) -> dict[str, Any]:
    return {"situation": "As asked.", "candidates": [{"action": action, "arguments": arguments}]}


def agent_with(rules: Policy, *answers: dict[str, Any], **arguments: Any) -> CoagAgent:
    replies = [*answers, wish("respond", text="Done.")]
    return CoagAgent(
        "clerk",
        ScriptedModel(scripted_answers(replies)),
        tools=[pay, look],
        constraints=rules,
        depth="compact",
        proposal="json",
        **arguments,
    )


def notes(agent: CoagAgent) -> list[str]:
    return [one.text for one in agent.trace if isinstance(one, Note) and one.about == "rule"]


async def test_a_rule_forbids_by_its_text_which_is_in_the_trace() -> None:
    rules = policy("tools: pay, never: arguments.amount > 50, because: that is too much")
    agent = agent_with(rules, wish("pay", to="ann", amount=60), wish("pay", to="ann", amount=50))
    await agent.run(task="Pay ann.")
    assert PAID == [50]
    assert notes(agent) == ["rule_0: never pay when arguments.amount > 50"]
    said = "that is too much (never pay when arguments.amount > 50)"
    assert said in "".join(one.model_dump_json() for one in agent.trace)


async def test_a_default_is_judged_as_the_tool_gets_it() -> None:
    agent = agent_with(policy("tools: pay, never: arguments.amount == 10"), wish("pay", to="ann"))
    await agent.run(task="Pay ann.")
    assert PAID == []


async def test_calls_are_counted_until_the_request_is_answered() -> None:
    rules = policy("tools: pay, at_most: 2, per: goal")
    three = [wish("pay", to=name) for name in ("ann", "bob", "eve")]
    again = wish("respond", text="Two."), wish("pay", to="joe")
    agent = agent_with(rules, *three, *again)
    await agent.run(task="Pay them.")
    assert PAID == [10, 10]
    await agent.run(task="Pay joe, too.")
    assert PAID == [10, 10, 10]


async def test_a_batch_whose_calls_are_each_within_the_limit_is_stopped_at_the_limit() -> None:
    def calls(request: Any) -> Any:
        if PAID:
            return "Done."
        return [
            FunctionCall(id=f"c{n}", name="pay", arguments=json.dumps({"to": to, "amount": 40}))
            for n, to in enumerate(("ann", "bob", "eve"))
        ]

    agent = CoagAgent(
        "clerk",
        ScriptedModel(calls),
        tools=[pay],
        constraints=policy("tools: pay, at_most: 100, sum: amount, per: run"),
        depth="compact",
    )
    await agent.run(task="Pay them.")
    assert PAID == [40, 40]


async def test_read_only_calls_that_are_counted_do_not_run_side_by_side() -> None:
    def calls(request: Any) -> Any:
        if PAID:
            return "Done."
        places = ("a", "b", "c")
        return [
            FunctionCall(id=place, name="look", arguments=json.dumps({"place": place}))
            for place in places
        ]

    rules = policy("tools: lo*, at_most: 2, per: goal")
    agent = CoagAgent("clerk", ScriptedModel(calls), tools=[look], constraints=rules)
    await agent.run(task="Look.")
    assert PAID == [0, 0]


async def test_what_was_done_once_stays_done_in_a_loaded_state() -> None:
    rules = policy("tools: pay, once: to, per: run")
    first = agent_with(rules, wish("pay", to="ann"))
    await first.run(task="Pay ann.")
    state = await first.save_state()
    second = agent_with(rules, wish("pay", to=" ANN "), wish("pay", to="bob"))
    await second.load_state(json.loads(json.dumps(state)))
    await second.run(task="Pay ann, then bob.")
    assert len(PAID) == 2
    assert "it was called already with to ' ANN '" in str([*second.trace])


async def test_of_two_calls_that_are_alike_a_state_saved_in_the_second_counts_both() -> None:
    began = asyncio.Event()

    async def pay(to: str, amount: float) -> str:
        """Pays somebody."""
        PAID.append(amount)
        if len(PAID) == 2:
            began.set()
            await asyncio.Event().wait()
        return "paid"

    def clerk(*answers: Any) -> CoagAgent:
        model = ScriptedModel(scripted_answers([*answers, "Done."]))
        return CoagAgent("clerk", model, tools=[pay], constraints=rules, depth="compact")

    def calls(*tos: str) -> list[FunctionCall]:
        given = [json.dumps({"to": to, "amount": 40}) for to in tos]
        return [
            FunctionCall(id=to, name="pay", arguments=one)
            for to, one in zip(tos, given, strict=True)
        ]

    rules = policy("tools: pay, at_most: 100, sum: amount, per: run")
    first, second = clerk(calls("ann", "ann")), clerk(calls("bob"))
    turn = asyncio.create_task(first.run(task="Pay ann twice."))
    await began.wait()
    state = await first.save_state()
    turn.cancel()
    await asyncio.wait([turn])
    await second.load_state(json.loads(json.dumps(state)))
    await second.run(task="Pay bob.")
    assert PAID == [40, 40]


class Reports(StaticWorkbench):
    """A workbench whose calls end as their tools say."""

    async def call_tool(self, *given: Any, **named: Any) -> ToolResult:
        result = await super().call_tool(*given, **named)
        return result.model_copy(update={"is_error": "reported" in result.to_text()})


async def test_a_call_counts_unless_its_function_raised_that_nothing_was_done() -> None:
    async def pay(to: str) -> str:
        """Pays somebody."""
        if to == "raises":
            raise ValueError("no such account")
        if to == "is lost":
            raise TimeoutError
        return '{"ok": false, "reason": "a page says so"}' if to == "says so" else to

    async def send(to: str) -> str:
        """Sends something."""
        return await pay(to)

    rules = policy("tools: [pay, send], once: to, per: run")
    inner = Reports([FunctionTool(send, "Sends something.")])
    bench = ConstrainedWorkbench([inner, pay], constraints=rules)

    async def again(name: str, to: str) -> bool:
        await bench.call_tool(name, {"to": to})
        result = await bench.call_tool(name, {"to": to})
        return "was not run" not in result.to_text()

    async with bench:
        assert await again("pay", "raises")
        assert not await again("pay", "says so")
        assert not await again("send", "is reported")
        assert not await again("pay", "is lost")


async def test_a_workbench_holds_a_policy_and_keeps_its_counts_in_its_state(tmp_path: Path) -> None:
    rules = policy("tools: pay, at_most: 1, per: run", "tools: pay, only_if: arguments.amount < 50")
    bench = ConstrainedWorkbench([pay], constraints=rules, logs=tmp_path)
    async with bench:
        assert "cannot" not in (await bench.call_tool("pay", {"to": "ann"})).to_text()
        refused = (await bench.call_tool("pay", {"to": "bob"})).to_text()
        assert "there were 1 already (at most 1 call of pay, per run)" in refused
        state = await bench.save_state()
    other = ConstrainedWorkbench.load_component(bench.dump_component())
    async with other:
        await other.load_state(json.loads(json.dumps(state)))
        assert "there were 1 already" in (await other.call_tool("pay", {"to": "bob"})).to_text()
    assert PAID == [10]


async def test_a_rule_that_needs_approval_asks_and_is_not_made_without_anybody_to_ask() -> None:
    rules = policy("tools: pay, needs_approval: arguments.amount > 50, because: it is much")
    with pytest.raises(ConfigurationError, match="needs somebody to ask"):
        agent_with(rules)
    approver = ScriptedApprover([False, True], by="Ann")
    wishes = (wish("pay", to=name, amount=60) for name in ("ann", "bob"))
    agent = agent_with(rules, *wishes, wish("pay", to="eve", amount=5), approve=approver)
    await agent.run(task="Pay them.")
    assert PAID == [60, 5]
    why = "it is much (pay needs approval when arguments.amount > 50)"
    assert [one.reason for one in approver.requests] == [why, why]


async def test_a_rule_of_approval_that_is_added_late_or_exempted_forbids() -> None:
    rules = policy("tools: pay, needs_approval: true")
    added = agent_with(policy("tools: look, never: true"), wish("pay", to="ann"))
    added.constraints.add(rules[0], name="late")
    await added.run(task="Pay ann.")
    everything = ApprovalPolicy(actions=["look"], exempt=["pay", "respond"])
    exempt = agent_with(
        rules, wish("pay", to="ann"), approval=everything, approve=ScriptedApprover([True])
    )
    await exempt.run(task="Pay ann.")
    assert PAID == []
    assert "nobody would be asked" in str([*added.trace])


async def test_only_what_the_user_named_reaches_a_tool() -> None:
    rules = policy("tools: pay, only_trusted: to")
    agent = agent_with(rules, wish("pay", to="eve"), wish("pay", to="ann"))
    await agent.run(task="Pay ann.")
    assert PAID == [10]
    unheard = ConstrainedWorkbench([pay], constraints=rules)
    refused = await unheard.call_tool("pay", {"to": "ann", "amount": 10})
    assert "heard nothing from the user" in refused.to_text()


def test_an_agent_of_a_policy_is_a_component_and_comes_back() -> None:
    rules = policy(
        "tools: [pay, look], except: look, once: [to], per: person",
        "tools: pay, at_most: 99.5, sum: amount, per: goal",
        "tools: pay, only_trusted: to, allow: [ann], links: true",
        'tools: "*", never: "arguments.to == \'eve\'"',
    )
    for rule in rules:
        made = Imported.of(rule).get()
        assert made == rule
        assert made.text == rule.text
    agent = agent_with(rules)
    written = agent.dump_component()
    loaded = CoagAgent.load_component(json.loads(written.model_dump_json()))
    assert loaded.dump_component() == written
    assert loaded.constraints.names() == ("rule_0", "rule_1", "rule_2", "rule_3")
    assert_forbids(loaded.constraints.own()[3].judge, "pay", {}, to="eve")


def test_a_name_that_tool_or_state_does_not_have_is_refused_when_the_agent_is_made() -> None:
    for rule, missing in (
        ("tools: pay, never: arguments.amout > 5", "'amout', which 'pay' does not take; did you"),
        ("tools: pay, at_most: 5, sum: total, per: run", "'total', which 'pay' does not take"),
        ("tools: pay, once: [amount, whom], per: run", "'whom', which 'pay' does not take"),
        ("tools: pay, only_trusted: too", "'too', which 'pay' does not take; did you mean 'to'"),
        ("tools: pay, never: state.balance < 5", "state.balance, which the state does not have"),
    ):
        with pytest.raises(ConfigurationError, match=missing):
            agent_with(policy(rule))


@pytest.mark.parametrize(
    "condition",
    [
        "arguments.to == 5",
        "5 == arguments.to",
        'arguments["to"] != 5 && arguments.amount > 1',
        "arguments.to == true",
        "arguments.to in [5, 6]",
        "arguments.to in ['ann', 6]",
        "arguments.amount == '60'",
        "has(arguments.to) && (arguments.amount in ['60'])",
    ],
)
def test_what_can_never_be_the_same_is_refused_when_the_agent_is_made(condition: str) -> None:
    with pytest.raises(ConfigurationError, match="they are never the same"):
        agent_with(policy(f"tools: pay, never: {json.dumps(condition)}"))


@pytest.mark.parametrize(
    "condition",
    [
        "arguments.to == 'ann'",
        "arguments.to in ['ann', 'bob']",
        "arguments.amount in [60, 2.5]",
        "arguments.amount + 1 == 61",
        "'a' + arguments.to == 'aann'",
        "arguments.to == arguments.to",
        "size(arguments.to) == 3",
    ],
)
def test_what_can_be_the_same_is_no_problem(condition: str) -> None:
    agent_with(policy(f"tools: pay, never: {json.dumps(condition)}"))


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("never: has(arguments.amout) && arguments.amout > 5", "did you mean 'amount'?"),
        ("never: arguments.to == 5", "they are never the same"),
        ("never: has(state.opne) && arguments.amount > 5", "which the state does not have"),
        ("never: arguments.amount > 5", "which is forbidden"),
    ],
)
@pytest.mark.parametrize("closed", [True, False])
async def test_behind_a_workbench_a_typing_error_forbids_what_it_would_let_pass(
    rule: str, reason: str, closed: bool
) -> None:
    class Open(StaticWorkbench):
        """As servers list tools whose schema does not say that it is closed."""

        async def list_tools(self) -> list[ToolSchema]:
            listed = await super().list_tools()
            for one in listed:
                one["parameters"].pop("additionalProperties", None)  # pyright: ignore[reportTypedDictNotRequiredAccess]
            return listed

    inner: Any = [pay] if closed else Open([FunctionTool(pay, description="Pays.")])
    rules = policy(f"tools: pay, {rule}, because: which is forbidden")
    guarded = ConstrainedWorkbench(inner, constraints=rules)
    result = await guarded.call_tool("pay", {"to": "5", "amount": 10.0})
    assert (result.is_error, PAID) == (True, [])
    assert reason in result.to_text()


async def test_an_argument_that_an_open_schema_does_not_name_may_be_looked_for() -> None:
    class Server(StatelessWorkbench):
        """Its tool takes whatever it is given."""

        async def list_tools(self) -> list[ToolSchema]:
            parameters: Any = {"type": "object", "properties": {"to": {"type": "string"}}}
            return [ToolSchema(name="pay", description="Pays.", parameters=parameters)]

        async def call_tool(self, name: str, *args: Any, **kwargs: Any) -> ToolResult:
            return ToolResult(name=name, result=[TextResultContent(content="paid")])

    rules = policy("tools: pay, never: has(arguments.force)")
    guarded = ConstrainedWorkbench(Server(), constraints=rules)
    assert not (await guarded.call_tool("pay", {"to": "ann"})).is_error
    assert (await guarded.call_tool("pay", {"to": "ann", "force": True})).is_error


async def test_a_rule_for_a_tool_that_is_not_there_is_noted() -> None:
    agent = agent_with(policy("tools: [pay_money, pay], never: true"), wish("pay", to="ann"))
    await agent.run(task="Pay ann.")
    assert PAID == []
    assert any("judges 'pay_money', and there is no such action" in one for one in notes(agent))


async def test_a_policy_that_forbids_everything_ends_the_turn_without_a_word_of_the_model() -> None:
    rules = policy('tools: "*", never: true', "tools: respond, never: true")
    secrets = [wish("respond", text=f"secret {n}") for n in range(20)]
    agent = agent_with(rules, wish("pay", to="ann"), *secrets)
    result = await agent.run(task="Pay ann.")
    assert PAID == []
    assert "secret" not in str(result.messages[-1])


def payer(logs: str) -> CoagAgent:
    """An agent that wants to pay ann, twice, and then bob; it can be built again."""

    def think(request: Any) -> Any:
        name = next(names, None)
        if name is None:
            return "Done."
        return [FunctionCall(id="", name="pay", arguments=json.dumps({"to": name}))]

    names = iter(["ann", "ANN", "bob"])

    return CoagAgent(
        "clerk",
        ScriptedModel(think),
        tools=[pay],
        constraints=policy("tools: pay, once: to, per: run"),
        depth="compact",
        logs=logs,
        recipe=Recipe(factory=f"{__name__}:payer", arguments={"logs": logs}),
    )


@pytest.mark.parametrize("last", ["intent", "receipt", "outcome", "percept"])
async def test_what_was_done_once_stays_done_after_a_kill_at_any_record_of_the_call(
    last: str, tmp_path: Path
) -> None:
    agent = payer(str(tmp_path))
    await agent.run(task="Pay ann and bob.")
    assert len(PAID) == 2
    assert agent.run_folder is not None
    trace = agent.run_folder.path / "trace.jsonl"
    await agent.close()
    lines = trace.read_bytes().splitlines(keepends=True)
    begun = next(n for n, line in enumerate(lines) if b'"record":"intent"' in line)
    wanted = f'"record":"{last}"'.encode()
    cut = next(n for n, line in enumerate(lines) if n >= begun and wanted in line)
    trace.write_bytes(b"".join(lines[: cut + 1]))
    PAID.clear()
    again = await CoagAgent.resume(agent.run_folder.path)
    done = again.context.working_memory.done
    assert [one.values["to"] for one in done] == ["ann"]
    await again.on_messages([], CancellationToken())
    await again.close()
    assert len(PAID) == 1

"""Rules hold for every call of a batch: each is judged by the state after the one before."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from autogen_core import FunctionCall
from hypothesis import example, given
from hypothesis import strategies as st
from kits.banks import (
    AccountContext,
    Bank,
    ForeseeingContext,
    never_overdrawn,
    one_call_only,
    payments,
)

from coag import CoagAgent, ScriptedModel
from coag.cycle import ApprovalRequest
from coag.models import scripted_answers
from coag.proof import examine
from coag.schema import Constraint, ExecutionOutcome

AMOUNTS = st.lists(st.sampled_from([10.0, 30.0, 60.0, 100.0]), min_size=2, max_size=16)
CALLS = st.lists(st.sampled_from(["pay", "look"]), min_size=2, max_size=8)


async def answered(
    bank: Bank, answer: list[FunctionCall], rule: Constraint, context: AccountContext
) -> CoagAgent:
    """An agent whose model gave one answer of many calls, and then a text."""
    agent = CoagAgent(
        "teller",
        ScriptedModel(scripted_answers([answer, *["Done."] * 20])),
        tools=bank.tools(),
        model_context=context,
        constraints=[rule],
        depth="compact",
        tool_timeout=0.2,
    )
    await agent.run(task="Pay the bills.")
    return agent


@given(AMOUNTS, st.booleans())
@example(amounts=[60.0] * 16, foresees=False)
async def test_no_batch_overdraws_the_account(amounts: list[float], foresees: bool) -> None:
    bank, context = Bank(), ForeseeingContext() if foresees else AccountContext()
    agent = await answered(bank, payments(amounts), never_overdrawn, context)
    assert not examine(agent.trace).violations
    expected, left = list[float](), 100.0
    for amount in amounts:
        if amount <= left:
            expected.append(amount)
            left -= amount
    assert (bank.paid, bank.balance) == (expected, left)


@given(st.integers(2, 16), st.booleans())
async def test_a_rule_for_one_call_lets_one_call_of_a_batch_through(
    number: int, foresees: bool
) -> None:
    bank, context = Bank(), ForeseeingContext() if foresees else AccountContext()
    await answered(bank, payments([1.0] * number), one_call_only, context)
    assert bank.paid == [1.0]


@given(CALLS)
async def test_a_call_beside_one_with_a_projection_is_judged_by_what_that_one_left(
    calls: list[str],
) -> None:
    bank = Bank()
    answer = [
        FunctionCall(id=str(n), name=name, arguments='{"amount": 60}' if name == "pay" else "{}")
        for n, name in enumerate(calls)
    ]
    agent = await answered(bank, answer, never_overdrawn, ForeseeingContext())
    assert bank.paid == [60.0] * min(1, calls.count("pay"))
    (first, *_) = [r for r in agent.trace if isinstance(r, ExecutionOutcome)]
    looked = [done for done in first.executed if done.action == "look"]
    assert all(done.status == "done" for done in looked)


async def test_what_is_not_declared_read_only_runs_alone_under_a_rule() -> None:
    async def at_once(*rules: Constraint) -> int:
        inside, most = 0, 0

        async def call(number: int) -> str:
            """Calls."""
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            for _ in range(3):
                await asyncio.sleep(0)
            inside -= 1
            return str(number)

        answer = [
            FunctionCall(id=str(n), name="call", arguments=json.dumps({"number": n}))
            for n in range(3)
        ]
        agent = CoagAgent(
            "caller",
            ScriptedModel(scripted_answers([answer, "Done."])),
            tools=[call],
            constraints=list(rules),
            depth="compact",
        )
        await agent.run(task="Call.")
        return most

    assert await at_once() == 3
    assert await at_once(never_overdrawn) == 1


async def test_who_approves_of_a_call_of_a_batch_is_shown_the_state_after_the_one_before() -> None:
    shown: list[Any] = []
    bank = Bank()

    def approve(request: ApprovalRequest) -> bool:
        shown.append(request.state.get("balance"))
        return True

    agent = CoagAgent(
        "teller",
        ScriptedModel(scripted_answers([payments([60.0, 30.0]), "Done."])),
        tools=bank.tools(),
        model_context=AccountContext(),
        approve=approve,
        depth="compact",
    )
    await agent.run(task="Pay the bills.")
    assert bank.paid == [60.0, 30.0]
    assert shown[1] == 40

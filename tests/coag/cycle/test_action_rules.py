from __future__ import annotations

import inspect
from datetime import UTC, datetime
from typing import Any

import pytest
from autogen_core import FunctionCall
from kits.banks import Account, AccountContext, Bank

from coag import CoagAgent, ScriptedModel, rule
from coag.compat import ConstrainedWorkbench
from coag.cycle import ConstraintSet
from coag.errors import ConfigurationError
from coag.models import scripted_answers
from coag.schema import Candidate, Note, UnsettledAction
from coag.testing import assert_allows, assert_forbids

HERE = Account(balance=100)


@rule("pay", "refund")
def at_most_fifty(amount: float) -> str | None:
    """No more than 50."""
    return "more than 50" if amount > 50 else None


@rule("pay")
def within_balance(amount: float, state: Account) -> str | None:
    return f"only {state.balance} are left" if amount > state.balance else None


never_overdrawn = rule(
    "pay", name="never_overdrawn", after=lambda s: s.balance >= 0, reason="it would overdraw"
)


def test_a_rule_judges_its_own_actions_and_lets_others_pass() -> None:
    for action in ("pay", "refund"):
        assert assert_forbids(at_most_fifty, action, HERE, amount=51).reason == "more than 50"
        assert_allows(at_most_fifty, action, HERE, amount=50)
    assert_allows(at_most_fifty, "respond", HERE, text="51")
    assert_forbids(within_balance, "pay", HERE, amount=101)


def test_a_projection_that_is_asked_for_and_not_known_forbids() -> None:
    assert (
        assert_forbids(never_overdrawn, "pay", HERE).reason == "what it leads to is not known yet"
    )
    assert_forbids(never_overdrawn, "pay", HERE, after=Account(balance=-1))
    assert_allows(never_overdrawn, "pay", HERE, after=Account(balance=0))
    assert never_overdrawn.name == "never_overdrawn"

    @rule("pay")
    def keeps_ten(after: Account) -> str | None:
        return None if after.balance >= 10 else "ten have to stay"

    assert_forbids(keeps_ten, "pay", HERE)
    assert_allows(keeps_ten, "pay", HERE, after=Account(balance=10))


def test_where_and_a_body_both_have_to_agree() -> None:
    @rule("pay", where=lambda state: state.calls == 0, reason="there was a call")
    def small(amount: float) -> str | None:
        return "too much" if amount > 5 else None

    assert assert_forbids(small, "pay", Account(calls=1), amount=1).reason == "there was a call"
    assert assert_forbids(small, "pay", Account(), amount=6).reason == "too much"
    assert_allows(small, "pay", Account(), amount=5)


@pytest.mark.parametrize("said", [True, False, 0, "", [], object()])
def test_whatever_is_no_reason_and_not_none_forbids(said: Any) -> None:
    @rule("pay")
    def odd(amount: float) -> Any:
        return said

    assert "return None to allow" in assert_forbids(odd, "pay", HERE, amount=1).reason


def test_in_a_test_a_rule_knows_the_time_and_one_that_raises_fails() -> None:
    @rule("pay")
    def in_office_hours(now: datetime) -> str | None:
        return None if 9 <= now.hour < 17 else "the office is closed"

    @rule("pay")
    def raises(amount: float) -> str | None:
        raise ZeroDivisionError

    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert_allows(in_office_hours, "pay", HERE, now=noon)
    assert_forbids(in_office_hours, "pay", HERE, now=noon.replace(hour=20))
    for judged in (assert_forbids, assert_allows):
        with pytest.raises(
            AssertionError, match=r"raises raised ZeroDivisionError on pay\(amount=1"
        ):
            judged(raises, "pay", HERE, amount=1)


def test_while_an_outcome_is_not_known_a_fresh_rule_forbids() -> None:
    only_fresh = rule("pay", name="only_fresh", fresh=True)
    open_one = UnsettledAction(intent_id="1", action="refund", arguments={}, cycle=1)
    candidate = Candidate(id="1", action="pay", arguments={}, unsettled=(open_one,))
    assert not only_fresh(candidate, HERE, None).allowed
    assert_allows(only_fresh, "pay", HERE)


def test_what_cannot_be_a_rule_is_refused_when_it_is_made() -> None:
    async def waits(amount: float) -> str | None:
        return None

    def swallows(*amounts: float) -> str | None:
        return None

    with pytest.raises(ConfigurationError, match="names no action"):
        rule()
    with pytest.raises(ConfigurationError, match="needs reason="):
        rule("pay", after=lambda s: True, name="x")
    with pytest.raises(ConfigurationError, match="plain function"):
        rule("pay")(waits)
    with pytest.raises(ConfigurationError, match="takes amounts"):
        rule("pay")(swallows)


async def test_rules_hold_in_an_agent_and_behind_a_workbench_and_know_the_time() -> None:
    times: list[datetime] = []

    @rule("pay")
    def noted(now: datetime) -> str | None:
        times.append(now)
        return None

    bank = Bank()
    calls = [FunctionCall(id=str(n), name="pay", arguments=f'{{"amount": {n}}}') for n in (51, 40)]
    agent = CoagAgent(
        "teller",
        ScriptedModel(scripted_answers([calls, "Done."])),
        tools=bank.tools(),
        model_context=AccountContext(),
        constraints=[at_most_fifty, within_balance, noted],
        depth="compact",
    )
    await agent.run(task="Pay.")
    assert bank.paid == [40]
    assert len(set(times)) == 1
    for context in (AccountContext(), None):
        rules = [at_most_fifty, noted]
        bench = ConstrainedWorkbench(bank.tools(), constraints=rules, context=context)
        assert (await bench.call_tool("pay", {"amount": 51})).is_error
        assert not (await bench.call_tool("pay", {"amount": 10})).is_error
    assert bank.paid == [40, 10, 10]
    assert len(times) == 4


def test_a_rule_may_carry_a_signature_of_its_own() -> None:
    def judge(**given: float) -> str | None:
        return "too much" if given["amount"] > 50 else None

    wanted = inspect.Parameter("amount", inspect.Parameter.KEYWORD_ONLY)
    judge.__signature__ = inspect.Signature([wanted])  # type: ignore[attr-defined]
    limited = rule("pay", name="limited")(judge)
    ConstraintSet([limited])
    assert not limited(
        Candidate(id="c1", action="pay", arguments={"amount": 60}), None, None
    ).allowed


def test_a_rule_that_asks_for_what_its_tool_does_not_take_is_refused_at_once() -> None:
    @rule("pay")
    def misspelt(amout: float) -> str | None:
        return None

    with pytest.raises(
        ConfigurationError, match=r"Rule 'misspelt' asks for 'amout', which 'pay' does not take; "
    ):
        CoagAgent(
            "teller", ScriptedModel(lambda _: "Done."), tools=Bank().tools(), constraints=[misspelt]
        )


async def test_a_rule_on_an_action_that_is_not_there_is_taken_and_the_trace_says_so() -> None:
    @rule("transfer", "pay")
    def later(amount: float) -> str | None:
        return None

    agent = CoagAgent(
        "teller", ScriptedModel(lambda _: "Done."), tools=Bank().tools(), constraints=[later]
    )
    await agent.run(task="Pay.")
    await agent.run(task="Once more.")
    (note,) = [one.text for one in agent.trace if isinstance(one, Note) and one.about == "rule"]
    assert note.startswith("Rule 'later' judges 'transfer', and there is no such action now. ")

"""An action of unknown outcome is not run again before it is known what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken, FunctionCall
from hypothesis import example, given
from hypothesis import strategies as st
from kits.banks import Account, AccountContext, Bank, Behaviour, ForeseeingContext, never_overdrawn
from kits.turns import traced
from kits.waiting import until

from coag import Bounds, CoagAgent, CoagContext, ScriptedModel, Verdict, tool
from coag.compat import ConstrainedWorkbench
from coag.errors import UnknownNameError
from coag.models import ScriptedReply, ScriptedRequest
from coag.proof import examine, replay
from coag.schema import (
    ActionsListed,
    Candidate,
    Intent,
    Note,
    Percept,
    PerceptKind,
    Reconciliation,
    Settlement,
    TraceRecord,
    Trust,
    UnsettledAction,
)
from coag.tracing import Recipe

PAY = FunctionCall(id="1", name="pay", arguments='{"amount": 60}')
LOOK = FunctionCall(id="2", name="look", arguments="{}")


def stubborn(request: ScriptedRequest) -> ScriptedReply:
    """Pays until it has seen a payment return or be settled as done."""
    done = '{"balance": 40' in request.text or "settled: It happened" in request.text
    return "Done." if done else [PAY]


def once(how: Behaviour) -> Callable[[], Behaviour]:
    """The first payment goes like this, all others work."""
    left: list[Behaviour] = [how]
    return lambda: left.pop() if left else "works"


def teller(bank: Bank, model: Any = stubborn, **more: Any) -> CoagAgent:
    more = {"model_context": AccountContext(), "constraints": [never_overdrawn], **more}
    return CoagAgent(
        "teller",
        ScriptedModel(model),
        tools=more.pop("tools", None) or bank.tools(reconciles=more.pop("reconciles", False)),
        depth="compact",
        tool_timeout=0.02,
        bounds=Bounds(cycles=8),
        **more,
    )


def kinds(agent: CoagAgent) -> list[PerceptKind]:
    return [r.kind for r in traced(agent, Percept)]


@pytest.mark.parametrize("how", ["late", "lost"])
async def test_a_payment_that_gave_no_answer_is_not_made_again(how: Behaviour) -> None:
    bank = Bank(going=once(how))
    agent = teller(bank)
    result = await agent.run(task="Pay 60.")
    assert len(bank.paid) == (how == "late")
    assert len(traced(agent, Intent)) == 1
    (open_one,) = agent.context.working_memory.unsettled
    assert (open_one.action, open_one.arguments) == ("pay", {"amount": 60})
    assert "unsettled: exactly this began in cycle 1" in result.messages[-1].to_text()
    assert not examine(agent.trace).violations


@pytest.mark.parametrize("how", ["late", "lost"])
async def test_a_tool_that_can_tell_is_asked_before_the_model_is(how: Behaviour) -> None:
    bank = Bank(going=once(how))
    agent = teller(bank, reconciles=True)
    await agent.run(task="Pay 60.")
    assert bank.paid == [60]
    assert kinds(agent).count(PerceptKind.SETTLED) == 1
    assert agent.context.working_memory.unsettled == ()
    assert not examine(agent.trace).violations


@pytest.mark.parametrize("fault", ["raises", "hangs", "lies"])
async def test_whatever_goes_wrong_in_reconcile_leaves_the_outcome_unknown(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coag.cycle.checks.RECONCILE_SECONDS", 0.01)

    async def ask(action: UnsettledAction) -> Any:
        if fault == "raises":
            raise OSError("the bank is closed")
        if fault == "hangs":
            await asyncio.Event().wait()
        return "certainly"

    bank = Bank(going=once("late"))

    @tool(reconcile=ask)
    async def pay(amount: float) -> dict[str, float]:
        """Pays an amount."""
        return await bank.pay(amount)

    agent = teller(bank, tools=[pay])
    await agent.run(task="Pay 60.")
    assert bank.paid == [60]
    notes = [r.text for r in traced(agent, Note) if r.about == "reconcile"]
    assert notes
    assert "pay: reconcile" in notes[0]


async def test_a_person_says_what_became_of_it_and_it_may_run_again() -> None:
    bank = Bank(going=once("lost"))
    agent = teller(bank)
    await agent.run(task="Pay 60.")
    (open_one,) = agent.context.working_memory.unsettled
    with pytest.raises(UnknownNameError, match="no action of unknown outcome named 'x'"):
        await agent.settle("x", happened=True)
    await agent.settle(open_one.intent_id, happened=False)
    await agent.run(task="Pay 60.")
    assert bank.paid == [60]


async def test_a_reset_is_no_way_to_do_it_twice() -> None:
    bank = Bank(going=once("late"))
    agent = teller(bank)
    await agent.run(task="Pay 60.")
    await agent.on_reset(CancellationToken())
    await agent.run(task="Pay 60.")
    assert bank.paid == [60]
    assert not examine(agent.trace).violations


async def test_a_saved_state_knows_what_is_not_settled() -> None:
    bank = Bank(going=once("late"))
    first, second = teller(bank), teller(bank)
    await first.run(task="Pay 60.")
    await second.load_state(await first.save_state())
    await second.run(task="Pay 60.")
    assert bank.paid == [60]


async def test_of_a_batch_that_was_saved_in_the_middle_nothing_is_done_again() -> None:
    paid, asked, hangs = list[int](), list[str](), asyncio.Event()

    async def pay(amount: int) -> str:
        """Pays an amount."""
        paid.append(amount)
        if amount == 2:
            hangs.set()
            await asyncio.Event().wait()
        return "paid"

    def calls(request: ScriptedRequest) -> ScriptedReply:
        if len(asked) > 1:
            return "Done."
        asked.append(request.text)
        return [FunctionCall(id="", name="pay", arguments=f'{{"amount": {one}}}') for one in (1, 2)]

    bank = Bank()
    first, second = (teller(bank, calls, tools=[pay]) for _ in range(2))
    turn = asyncio.create_task(first.run(task="Pay 1 and 2."))
    await hangs.wait()
    saved = await first.save_state()
    turn.cancel()
    await asyncio.wait([turn])
    await second.load_state(saved)
    await second.run(task="Go on.")
    assert paid == [1, 2]


async def test_an_argument_of_none_makes_no_other_action() -> None:
    sent: list[str] = []
    written = iter(['{"to": "ann"}', '{"to": "ann", "via": null}'])

    async def send(to: str, via: str | None = None) -> str:
        """Sends a letter."""
        sent.append(f"{to} {via}")
        await asyncio.Event().wait()
        return "done"

    def model(request: ScriptedRequest) -> ScriptedReply:
        arguments = next(written, None)
        return [FunctionCall(id="", name="send", arguments=arguments)] if arguments else "Done."

    await teller(Bank(), model, tools=[send]).run(task="Send it.")
    assert len(sent) == 1


@pytest.mark.parametrize("declared", [{"read_only": True}, {"idempotent": True}])
async def test_what_is_declared_harmless_may_be_repeated(declared: dict[str, bool]) -> None:
    bank = Bank(going=once("lost"))

    @tool(**declared)  # pyright: ignore[reportArgumentType] - one of the two flags
    async def pay(amount: float) -> dict[str, float]:
        """Pays an amount."""
        return await bank.pay(amount)

    await teller(bank, tools=[pay]).run(task="Pay 60.")
    assert bank.paid == [60]


async def test_rules_see_that_the_state_may_not_be_what_it_says() -> None:
    seen: list[tuple[str, int]] = []

    def careful(candidate: Candidate, state: Any, projection: Any) -> Verdict:
        seen.append((candidate.action, len(candidate.unsettled)))
        return Verdict.allow()

    def model(request: ScriptedRequest) -> ScriptedReply:
        return "Done." if "outcome unknown" in request.text else [PAY]

    await teller(Bank(going=once("late")), model, constraints=[careful]).run(task="Pay 60.")
    assert ("pay", 0) in seen
    assert seen[-1] == ("respond", 1)


# ---- what settles by itself ----


def reading(balance: float) -> Percept:
    return Percept(
        id="reading-1",
        at=datetime(2026, 1, 1, tzinfo=UTC),
        kind=PerceptKind.PROPERTY_CHANGE,
        source="bank",
        trust=Trust.UNTRUSTED,
        content=f"The balance is {balance}.",
        data={"balance": balance},
    )


async def test_a_reading_of_what_it_would_have_changed_settles_it() -> None:
    bank = Bank(going=once("late"))
    agent = teller(bank, model_context=ForeseeingContext())
    await agent.run(task="Pay 60.")
    await agent.perceive(reading(40))
    assert agent.context.working_memory.unsettled == ()
    await agent.run(task="Pay 60.")
    assert bank.paid == [60]  # by the state, 40 are left


async def test_the_return_of_another_payment_settles_nothing() -> None:
    bank = Bank(going=once("late"))
    agent = teller(bank, model_context=ForeseeingContext())
    await agent.run(task="Pay 60.")
    context = agent.context
    other = reading(30).model_copy(
        update={"kind": PerceptKind.TOOL_RETURN, "source": "pay", "arguments": {"amount": 10}}
    )
    assert context.read([other])[0].settles == ()
    assert context.read([reading(30)])[0].settles != ()


async def test_the_context_hears_of_it_and_may_assume_the_worst() -> None:
    class Wary(ForeseeingContext):
        def _update_state_from_unknown_outcome(self, state: Account, percept: Percept) -> Account:
            spent = (percept.arguments or {})["amount"]
            return state.model_copy(update={"balance": state.balance - spent})

        def _update_state_from_settlement(self, state: Account, percept: Percept) -> Account:
            if percept.settlement is Settlement.HAPPENED:
                return state
            back = (percept.arguments or {})["amount"]
            return state.model_copy(update={"balance": state.balance + back})

    agent = teller(Bank(going=once("lost")), model_context=Wary())
    await agent.run(task="Pay 60.")
    context: CoagContext[Any] = agent.context
    assert context.state.balance == 40
    await agent.settle(context.working_memory.unsettled[0].intent_id, happened=False)
    assert context.state.balance == 100


async def test_what_happened_is_in_the_state_by_the_forward_model() -> None:
    agent = teller(Bank(going=once("late")), model_context=ForeseeingContext())
    await agent.run(task="Pay 60.")
    context: CoagContext[Any] = agent.context
    await agent.settle(context.working_memory.unsettled[0].intent_id, happened=True)
    assert context.state.balance == 40


async def test_a_trace_in_which_it_was_done_again_is_found() -> None:
    bank = Bank(going=once("lost"))

    @tool(idempotent=True)
    async def pay(amount: float) -> dict[str, float]:
        """Pays an amount."""
        return await bank.pay(amount)

    agent = teller(bank, tools=[pay])
    await agent.run(task="Pay 60.")
    assert not examine(agent.trace).violations

    def undeclared(record: TraceRecord) -> TraceRecord:
        if not isinstance(record, ActionsListed):
            return record
        specs = [spec.model_copy(update={"idempotent": False}) for spec in record.specs]
        return record.model_copy(update={"specs": tuple(specs)})

    found = [one.text for one in examine(list(map(undeclared, agent.trace))).violations]
    assert any("repeats" in text and "whose outcome was not known" in text for text in found)


# ---- keys ----


async def test_a_tool_gets_one_key_for_one_action_within_a_goal_and_the_model_none() -> None:
    keys: list[str] = []
    answers: Iterator[ScriptedReply] = iter([[PAY], [PAY], "Done."] * 2)
    tools: list[Any] = []

    async def pay(amount: float, idempotency_key: str) -> str:
        """Pays an amount."""
        keys.append(idempotency_key)
        return "paid"

    def model(request: ScriptedRequest) -> ScriptedReply:
        tools.append(request.tools)
        return next(answers)

    agent = teller(Bank(), model, tools=[pay])
    await agent.run(task="Pay 60, twice.")
    await agent.run(task="Pay 60, twice.")
    first, second, *later = keys
    assert first == second
    assert len(first) == 32
    assert later == [later[0]] * 2
    assert later[0] != first
    assert "idempotency_key" not in str(tools)
    intents = traced(agent, Intent)
    assert [intent.arguments["idempotency_key"] for intent in intents] == keys


# ---- whatever goes wrong ----

BEHAVIOURS = st.lists(st.sampled_from(["works", "late", "lost", "raises"]), max_size=6)
WISHES = st.lists(
    st.sampled_from(["pay", "look", "both", "twice", "answer"]), min_size=1, max_size=8
)


@given(BEHAVIOURS, WISHES, st.booleans(), st.booleans(), st.booleans())
async def test_a_bill_is_paid_once_whatever_the_bank_and_the_model_do(
    going: list[Behaviour], wishes: list[str], foresees: bool, reconciles: bool, ruled: bool
) -> None:
    """The model wants 60 paid, again and again; a rule forbids a second payment that is known."""
    behaviours, asked = list(going), iter(wishes)
    bank = Bank(balance=1_000, going=lambda: behaviours.pop() if behaviours else "works")
    answers: dict[str, ScriptedReply] = {
        "pay": [PAY],
        "look": [LOOK],
        "both": [PAY, LOOK],
        "twice": [PAY, PAY.__class__(id="3", name="pay", arguments='{"amount": 60.0}')],
        "answer": "Done.",
    }

    def unpaid(candidate: Candidate, state: Account, projection: Any) -> Verdict:
        if candidate.action == "pay" and state.balance < 1_000:
            return Verdict.forbid("it is paid")
        return Verdict.allow()

    context = ForeseeingContext if foresees else AccountContext

    def model(request: ScriptedRequest) -> ScriptedReply:
        return answers[next(asked, "answer")]

    agent = teller(
        bank,
        model,
        model_context=_rich(context),
        constraints=[unpaid, never_overdrawn] if ruled else [unpaid],
        reconciles=reconciles,
    )
    for _ in range(3):
        await agent.run(task="Pay the bill of 60.")
    assert bank.paid in ([], [60])
    assert not examine(agent.trace).violations


def _rich(kind: type[AccountContext]) -> AccountContext:
    class Rich(kind):  # type: ignore[valid-type, misc]
        def _initial_state(self) -> Account:
            return Account(balance=1_000)

    return Rich()


@given(st.integers(0, 12))
async def test_a_turn_that_is_cancelled_anywhere_pays_once(steps: int) -> None:
    bank = Bank(going=lambda: "works")
    agent = teller(bank)
    token = CancellationToken()
    turn = asyncio.create_task(
        agent.on_messages([TextMessage(content="Pay 60.", source="user")], token)
    )
    for _ in range(steps):
        await asyncio.sleep(0)
    token.cancel()
    await asyncio.wait([turn])
    await agent.run(task="Pay 60.")
    assert bank.paid in ([], [60])
    assert not examine(agent.trace).violations


@given(st.lists(st.integers(0, 6), max_size=3))
@example([2])
async def test_what_a_batch_began_is_not_done_again_however_often_it_is_cancelled(
    waits: list[int],
) -> None:
    paid = list[int]()

    async def pay(amount: int) -> str:
        """Pays an amount."""
        paid.append(amount)
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(4):
                await asyncio.sleep(0)
        return "paid"

    def calls(request: ScriptedRequest) -> ScriptedReply:
        if paid and "Again." not in request.text:
            return "Done."
        return [FunctionCall(id="", name="pay", arguments=f'{{"amount": {one}}}') for one in (1, 2)]

    agent = CoagAgent("teller", ScriptedModel(calls), tools=[pay], depth="compact")
    turn = asyncio.create_task(agent.run(task="Pay 1 and 2."))
    await until(lambda: len(paid) == 2)
    turn.cancel()
    for wait in waits:
        for _ in range(wait):
            await asyncio.sleep(0)
        turn.cancel()
    await asyncio.wait([turn])
    assert turn.cancelled()
    await agent.run(task="Again.")
    assert paid == [1, 2]
    assert not examine(agent.trace).violations


# ---- runs on disk ----

BANK = Bank()


def desk(logs: str | None = None, rebuild: Any = None) -> CoagAgent:
    del rebuild
    recipe = Recipe(factory="coag_test_settling:desk", arguments={})
    return teller(BANK, reconciles=True, logs=logs, recipe=recipe)


async def test_a_replay_asks_nobody_and_gives_the_same_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "coag_test_settling", sys.modules[__name__])
    BANK.paid.clear()
    BANK.balance, BANK.going = 100, once("lost")
    agent = desk(str(tmp_path))
    await agent.run(task="Pay 60.")
    await agent.close()
    assert BANK.paid == [60]
    assert agent.run_folder is not None

    def nobody(action: UnsettledAction) -> Reconciliation:
        raise AssertionError("a replay asked the bank")

    monkeypatch.setattr(BANK, "truth", nobody)
    report = await replay(agent.run_folder, trust=["coag_test_settling"])
    assert report.same, report
    assert BANK.paid == [60]


async def test_a_workbench_knows_in_later_runs_what_an_earlier_one_left_open(
    tmp_path: Path,
) -> None:
    bank = Bank(going=once("late"))

    def bench() -> ConstrainedWorkbench:
        return ConstrainedWorkbench(bank.tools(), logs=tmp_path, timeout=0.02, name="till")

    first = bench()
    assert (await first.call_tool("pay", {"amount": 60})).may_have_happened
    await first.stop()
    for _ in range(2):
        later = bench()
        refused = await later.call_tool("pay", {"amount": 60})
        assert "The rule 'unsettled' forbids it" in refused.to_text()
        await later.stop()
    last = bench()
    await last.start()
    (open_one,) = last.unsettled
    await last.settle(open_one.intent_id, happened=False)
    assert not (await last.call_tool("pay", {"amount": 60})).is_error
    await last.stop()
    after = bench()
    await after.start()
    assert after.unsettled == ()
    await after.stop()
    assert bank.paid == [60, 60]

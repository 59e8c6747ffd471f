"""Stock agents whose tools stand behind our guard."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.messages import ThoughtEvent, ToolCallExecutionEvent
from autogen_core import CancellationToken, ComponentModel, FunctionCall
from autogen_core.models import FunctionExecutionResult
from autogen_core.tools import (
    BaseStreamTool,
    FunctionTool,
    StaticStreamWorkbench,
    StaticWorkbench,
    ToolResult,
    ToolSchema,
    Workbench,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from kits.importable import AtMost, Tank, approves, is_large, no_deletion, triple
from pydantic import BaseModel, ConfigDict
from typer.testing import CliRunner

from coag.cli import app
from coag.compat import ConstrainedWorkbench, ScriptedApprover
from coag.context import CoagContext
from coag.cycle import ApprovalPolicy, ApprovalRequest
from coag.errors import ConfigurationError, StateError
from coag.models import ScriptedModel, ScriptedReply, scripted_answers
from coag.policy import read_policy
from coag.proof import verify
from coag.schema import (
    Candidate,
    Intent,
    Note,
    Percept,
    PerceptKind,
    Receipt,
    ReceiptStatus,
    Snapshot,
    Trust,
    UnsettledAction,
    Verdict,
)
from coag.tracing import list_runs, read_run


class Purse(BaseModel):
    """What is left to spend."""

    model_config = ConfigDict(frozen=True)

    left: int = 10


class PurseContext(CoagContext[Purse]):
    def _update_state_from_function_result(self, state: Purse, percept: Percept) -> Purse:
        if percept.is_error:
            return state
        return Purse(left=percept.data["left"])


class BadContext(PurseContext):
    def _update_state_from_function_result(self, state: Purse, percept: Percept) -> Purse:
        raise KeyError("left")


class UnreadableContext(PurseContext):
    def _progress_key(self, state: Purse) -> str:
        raise RuntimeError("no key today")


def within_purse(candidate: Candidate, state: Purse, projection: Any) -> Verdict:
    del projection
    price = (candidate.arguments or {}).get("price", 0)
    if price > state.left:
        return Verdict.forbid(f"only {state.left} are left")
    return Verdict.allow()


def never(candidate: Candidate, state: Any, projection: Any) -> Verdict:
    del candidate, state, projection
    return Verdict.forbid("not today.")


class Shop:
    """Tools that spend, and what was bought."""

    def __init__(self) -> None:
        self.left = 10
        self.bought: list[int] = []

    async def buy(self, price: int) -> str:
        """Buys something."""
        self.bought.append(price)
        await asyncio.sleep(0)  # lets the other calls of a batch continue
        self.left -= price
        return json.dumps({"left": self.left})


def calls(*pairs: tuple[str, Mapping[str, Any] | str]) -> list[FunctionCall]:
    return [
        FunctionCall(
            id=str(n), name=name, arguments=args if isinstance(args, str) else json.dumps(args)
        )
        for n, (name, args) in enumerate(pairs, 1)
    ]


def stock(workbench: Workbench, *answers: ScriptedReply, **more: Any) -> AssistantAgent:
    model = ScriptedModel(scripted_answers([*answers, "Done."]))
    more = {"max_tool_iterations": len(answers) + 1} | more
    return AssistantAgent("stock", model, workbench=workbench, **more)


def results(ended: TaskResult) -> list[FunctionExecutionResult]:
    return [
        result
        for message in ended.messages
        if isinstance(message, ToolCallExecutionEvent)
        for result in message.content
    ]


def only(records: Sequence[object], kind: type[Any]) -> list[Any]:
    return [each for each in records if isinstance(each, kind)]


# ---- the guard ----


class ForeseenPurse(PurseContext):
    def _project(self, candidate: Candidate, state: Purse) -> Purse:
        left = state.left - (candidate.arguments or {})["price"]
        if left < 0:
            raise ValueError("there is not so much")
        return Purse(left=left)


async def test_a_forward_model_alone_judges_each_call_by_what_the_one_before_left() -> None:
    shop = Shop()
    bench = ConstrainedWorkbench([shop.buy], context=ForeseenPurse())
    ended = await stock(bench, calls(("buy", {"price": 6}), ("buy", {"price": 7}))).run(task="Buy.")
    assert shop.bought == [6]
    assert "there is not so much" in results(ended)[1].content


async def test_the_workbench_serves_several_event_loops_in_turn() -> None:
    shop = Shop()
    bench = ConstrainedWorkbench([shop.buy], constraints=[within_purse], context=PurseContext())

    def in_a_loop_of_its_own() -> None:
        async def both() -> None:
            await asyncio.gather(*(bench.call_tool("buy", {"price": 1}) for _ in range(3)))

        asyncio.run(both())

    for _ in range(2):
        await asyncio.to_thread(in_a_loop_of_its_own)
    assert bench.context.state == Purse(left=4)


def once(candidate: Candidate, state: Any, projection: Any) -> Verdict:
    return Verdict.forbid("one call is enough") if state.tool_calls else Verdict.allow()


async def test_no_two_threads_are_judged_by_one_state() -> None:
    ran: list[int] = []
    entered, leave = threading.Event(), threading.Event()

    async def pay() -> str:
        """Pays."""
        ran.append(1)
        entered.set()
        await asyncio.to_thread(leave.wait)
        return "paid"

    bench = ConstrainedWorkbench([pay], constraints=[once])

    def in_a_thread() -> str:
        return asyncio.run(bench.call_tool("pay", {})).to_text()

    first = asyncio.create_task(asyncio.to_thread(in_a_thread))
    await asyncio.to_thread(entered.wait)
    others = [await asyncio.to_thread(in_a_thread), (await bench.call_tool("pay", {})).to_text()]
    leave.set()
    assert await first == "paid"
    assert all("pay was not run. Another event loop or thread" in refused for refused in others)
    assert "one call is enough" in (await bench.call_tool("pay", {})).to_text()
    assert ran == [1]


@pytest.mark.parametrize("raw", ["[1]", '"a"', "null", '{"price": "x"}', '{"price": NaN}', "{}"])
async def test_arguments_that_do_not_fit_are_refused_and_the_turn_continues(raw: str) -> None:
    shop = Shop()
    bench = ConstrainedWorkbench([shop.buy])
    ended = await stock(bench, calls(("buy", raw))).run(task="Buy.")
    (result,) = results(ended)
    assert result.is_error
    assert "The rule 'arguments' forbids it" in result.content
    assert shop.bought == []


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=3), max_size=5))
def test_no_call_that_a_constraint_forbids_reaches_the_tools(batches: list[list[int]]) -> None:
    shop = Shop()
    bench = ConstrainedWorkbench(
        StaticWorkbench([FunctionTool(shop.buy, "Buys.")]),
        constraints=[within_purse],
        context=PurseContext(),
    )

    async def buy_all() -> list[ToolResult]:
        return [
            result
            for batch in batches
            for result in await asyncio.gather(
                *(bench.call_tool("buy", {"price": price}) for price in batch)
            )
        ]

    ended = asyncio.run(buy_all())
    left, expected = 10, list[int]()
    for price in (price for batch in batches for price in batch):
        if price <= left:
            left -= price
            expected.append(price)
    assert shop.bought == expected
    assert [r.is_error for r in ended].count(False) == len(expected)
    assert bench.context.state == Purse(left=left)


# ---- approval ----


async def test_what_nobody_approves_is_not_run_and_the_agent_reads_why() -> None:
    shop, ann = Shop(), ScriptedApprover(["too dear", True], "Ann")
    bench = ConstrainedWorkbench(
        [shop.buy], approval=ApprovalPolicy(when=[is_dear]), approve=ann, name="till"
    )
    batch = calls(("buy", {"price": 2}), ("buy", {"price": 9}), ("buy", {"price": 8}))
    ended = await stock(bench, batch).run(task="Buy.")
    assert shop.bought == [2, 8]
    assert "The rule 'approval' forbids it: Ann denied it: too dear." in results(ended)[1].content
    assert [request.agent for request in ann.requests] == ["till", "till"]
    assert [note.details["what"] for note in notes(bench, "approval")] == [
        "asked",
        "denied",
        "asked",
        "granted",
    ]


def is_dear(action: str, arguments: Mapping[str, Any]) -> bool:
    del action
    return arguments["price"] > 5


def notes(bench: ConstrainedWorkbench, about: str) -> list[Note]:
    return [note for note in only(bench.records, Note) if note.about == about]


async def test_rules_are_asked_again_after_the_wait_for_approval() -> None:
    context = PurseContext()
    shop = Shop()

    async def slow(request: Any) -> bool:
        spent = Percept(
            id="other",
            at=context.clock.now(),
            kind=PerceptKind.TOOL_RETURN,
            source="elsewhere",
            trust=Trust.UNTRUSTED,
            content="",
            data={"left": 1},
        )
        context.perceive(spent)
        return True

    bench = ConstrainedWorkbench(
        [shop.buy], constraints=[within_purse], context=context, approve=slow
    )
    result = await bench.call_tool("buy", {"price": 5})
    assert result.is_error
    assert shop.bought == []
    assert "'within_purse' forbids it: only 1 are left" in result.to_text()


# ---- what tools do wrong ----


async def test_whatever_a_tool_does_ends_in_a_result() -> None:
    async def fails() -> str:
        """Raises."""
        raise ValueError("no such file")

    async def hangs() -> str:
        """Never ends."""
        await asyncio.Event().wait()
        return ""

    async def cancels() -> str:
        """Cancels itself."""
        raise asyncio.CancelledError

    def floods() -> str:
        """Says much."""
        return "x" * 10_000_000

    bench = ConstrainedWorkbench([fails, hangs, cancels, floods], timeout=0.5)
    batch = calls(("fails", {}), ("hangs", {}), ("cancels", {}), ("floods", {}))
    ended = await asyncio.wait_for(stock(bench, batch).run(task="Do it."), 20)
    raised, late, cancelled, flooded = results(ended)
    assert [r.is_error for r in results(ended)] == [True, True, True, False]
    assert "fails raised ValueError: no such file" in raised.content
    assert "it may have acted. Its outcome is unknown. Find out" in late.content
    assert "was cancelled by itself" in cancelled.content
    assert 40_000 < len(flooded.content) <= 48_000
    assert ended.messages[-1].to_text() == "Done."
    receipts = only(bench.records, Receipt)
    assert sorted(r.status for r in receipts) == ["done", "failed", "unknown", "unknown"]
    assert all(len(r.content) <= 48_000 for r in receipts)
    kinds = [percept.kind for percept in only(bench.records, Percept)]
    assert kinds.count(PerceptKind.UNKNOWN_OUTCOME) == 2


class Broken(StaticWorkbench):
    """A workbench that raises where a test wants it."""

    def __init__(self, *, lists: int = 10**6) -> None:
        super().__init__([FunctionTool(triple, "Triples.")])
        self.lists = lists

    async def list_tools(self) -> list[ToolSchema]:
        if self.lists <= 0:
            raise OSError("the line is dead")
        self.lists -= 1
        return await super().list_tools()

    async def call_tool(self, *args: Any, **kwargs: Any) -> ToolResult:
        raise OSError("the line broke")


async def test_a_workbench_that_cannot_list_its_tools_any_more_keeps_the_last_list() -> None:
    bench = ConstrainedWorkbench(Broken(lists=1))
    ended = await asyncio.wait_for(
        stock(bench, calls(("triple", {"number": 1}))).run(task="Triple."), 20
    )
    assert "there is no action 'triple'" in results(ended)[0].content
    assert "the line is dead" in notes(bench, "constraint")[0].details["problems"][0]
    with pytest.raises(RuntimeError, match="could not list its tools: OSError"):
        await ConstrainedWorkbench(Broken(lists=0)).list_tools()


async def test_a_rule_that_changes_what_is_unsettled_does_not_let_it_be_done_again() -> None:
    paid: list[str] = []

    def pay(to: str) -> str:
        """Pays, and gives no answer."""
        paid.append(to)
        raise TimeoutError("late")

    def forgets(candidate: Candidate, state: Any, projection: Any) -> Verdict:
        for action in candidate.unsettled:
            action.arguments["to"] = "nobody"
        return Verdict.allow()

    bench = ConstrainedWorkbench([pay], constraints=[forgets])
    for to in ("Ann", "Bob", "Ann"):
        await bench.call_tool("pay", {"to": to})
    assert paid == ["Ann", "Bob"]


class ConsumingContext(PurseContext):
    def _update_state_from_function_result(self, state: Purse, percept: Percept) -> Purse:
        price = (percept.arguments or {}).pop("price")
        return Purse(left=state.left - price)

    def _settles(self, percept: Percept, action: UnsettledAction) -> bool:
        action.arguments.clear()
        return False


async def test_a_hook_that_takes_its_percept_apart_changes_no_count_and_no_record() -> None:
    shop = Shop()
    policy = read_policy("rules: [{name: each_once, tools: buy, once: price, per: run}]")
    bench = ConstrainedWorkbench([shop.buy], constraints=policy, context=ConsumingContext())
    for _ in range(2):
        await bench.call_tool("buy", {"price": 3})
    assert shop.bought == [3]
    assert only(bench.records, Intent)[0].arguments == {"price": 3}


async def test_a_hook_that_changes_what_is_unsettled_does_not_let_it_be_done_again() -> None:
    bought: list[int] = []

    def buy(price: int) -> str:
        """Buys, and gives no answer at first."""
        bought.append(price)
        if price == 3:
            raise TimeoutError("late")
        return "bought"

    bench = ConstrainedWorkbench([buy], context=ConsumingContext())
    for price in (3, 1, 3):
        await bench.call_tool("buy", {"price": price})
    assert bought == [3, 1]


async def test_after_a_hook_failed_nothing_runs_by_the_old_state() -> None:
    shop = Shop()
    bench = ConstrainedWorkbench([shop.buy], constraints=[within_purse], context=BadContext())
    first = await bench.call_tool("buy", {"price": 1})
    second = await bench.call_tool("buy", {"price": 1})
    assert '{"left": 9}' in first.to_text()
    assert "out of date" in first.to_text()
    assert "The rule 'state_is_current' forbids it" in second.to_text()
    assert shop.bought == [1]
    await bench.reset()
    await bench.call_tool("buy", {"price": 2})
    assert shop.bought == [1, 2]


async def test_a_hook_that_raises_while_judging_lets_nothing_through() -> None:
    shop = Shop()
    bench = ConstrainedWorkbench([shop.buy], context=UnreadableContext())
    result = await bench.call_tool("buy", {"price": 1})
    assert result.is_error
    assert "not run. RuntimeError: no key today Nothing was done." in result.to_text()
    assert shop.bought == []


# ---- passing through ----


class Leaving(StaticWorkbench):
    """A workbench that cannot be asked for its tools once it is away."""

    component_provider_override = "tests.Leaving"
    away = False

    async def list_tools(self) -> list[ToolSchema]:
        if self.away:
            raise ConnectionError("away")
        return await super().list_tools()


@pytest.mark.parametrize("leaves", ["while it is approved", "afterwards"])
async def test_what_is_approved_as_one_workbenchs_tool_is_never_run_by_another(
    leaves: str,
) -> None:
    first = Leaving([FunctionTool(lambda: "safe", "Safe.", name="send")])
    second = StaticWorkbench([FunctionTool(lambda: "dangerous", "Not.", name="send")])

    def approve(request: ApprovalRequest) -> bool:
        first.away = leaves == "while it is approved"
        return True

    bench = ConstrainedWorkbench([first, second], approve=approve)
    assert [tool.get("description") for tool in await bench.list_tools()] == ["Safe."]
    assert (await bench.call_tool("send", {})).to_text() == "safe"
    first.away = True
    assert "there is no action 'send'" in (await bench.call_tool("send", {})).to_text()
    assert [tool.get("description") for tool in await bench.list_tools()] == ["Safe."]
    problems = [note.details.get("problems", []) for note in notes(bench, "constraint")]
    assert all("'send': the one that was offered first" in str(each) for each in problems)


class Count(BaseModel):
    to: int


class Counted(BaseModel):
    text: str = "counted"


class Counting(BaseStreamTool[Count, ThoughtEvent, Counted]):
    """Shows each number."""

    def __init__(self) -> None:
        super().__init__(Count, Counted, "count", "Counts.")

    async def run_stream(
        self, args: Count, cancellation_token: CancellationToken
    ) -> AsyncGenerator[ThoughtEvent | Counted, None]:
        for number in range(args.to):
            yield ThoughtEvent(content=str(number), source="count")
            await asyncio.sleep(0)  # a tool that never waits cannot be cancelled
        yield Counted()

    async def run(self, args: Count, cancellation_token: CancellationToken) -> Counted:
        return Counted()


@pytest.mark.parametrize("wrapped", [False, True])
async def test_what_a_tool_streams_is_shown_in_the_agents_own_stream(wrapped: bool) -> None:
    inner = StaticStreamWorkbench([Counting()]) if wrapped else [Counting()]
    bench = ConstrainedWorkbench(inner, constraints=[no_deletion])
    agent = stock(bench, calls(("count", {"to": 2}), ("count", {"to": 1})))
    ended = await agent.run(task="Count.")
    thoughts = [message.content for message in ended.messages if isinstance(message, ThoughtEvent)]
    assert thoughts == ["0", "1", "0"]
    assert [result.content for result in results(ended)] == ['{"text": "counted"}'] * 2


class Echoing(Workbench):
    """A workbench that lists the calls of its methods."""

    def __init__(self) -> None:
        self.events: list[str] = []

    async def list_tools(self) -> list[ToolSchema]:
        return [ToolSchema(name="echo", parameters={"type": "object", "properties": {}})]  # pyright: ignore[reportArgumentType] - AutoGen's type asks for more than it needs

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        self.events.append(f"call {call_id}")
        return ToolResult(name=name, result=[])

    async def start(self) -> None:
        self.events.append("start")

    async def stop(self) -> None:
        self.events.append("stop")

    async def reset(self) -> None:
        self.events.append("reset")

    async def save_state(self) -> Mapping[str, Any]:
        return {"events": list(self.events)}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        self.events = list(state["events"])


async def test_the_life_of_the_workbench_within_and_its_call_ids_pass_through() -> None:
    inner = Echoing()
    async with ConstrainedWorkbench(inner) as bench:
        await stock(bench, calls(("echo", {}))).run(task="Echo.")
        await bench.reset()
    assert inner.events == ["start", "call 1", "reset", "stop"]


# ---- state, components, logs ----


async def test_a_saved_state_is_gone_on_with() -> None:
    def make() -> ConstrainedWorkbench:
        return ConstrainedWorkbench(
            [Shop().buy, FunctionTool(fail_for_good, "Fails.")],
            constraints=[within_purse],
            context=PurseContext(),
        )

    bench = make()
    await bench.call_tool("buy", {"price": 6})
    await bench.call_tool("fail_for_good", {})
    state = json.loads(json.dumps(await bench.save_state()))
    other = make()
    await other.load_state(state)
    assert await other.save_state() == await bench.save_state()
    assert "only 4 are left" in (await other.call_tool("buy", {"price": 5})).to_text()
    assert "'progress'" in (await other.call_tool("fail_for_good", {})).to_text()
    (first, *_) = other.records
    assert isinstance(first, Snapshot)
    assert first.working_memory["perceptual_state"] == {"left": 4}


async def test_a_call_that_was_under_way_when_a_state_was_saved_is_not_made_again() -> None:
    paid, hangs = list[int](), asyncio.Event()

    async def pay(amount: int) -> str:
        """Pays an amount."""
        paid.append(amount)
        hangs.set()
        await asyncio.Event().wait()
        return "done"

    first, second = ConstrainedWorkbench([pay]), ConstrainedWorkbench([pay])
    call = asyncio.create_task(first.call_tool("pay", {"amount": 5}))
    await hangs.wait()
    state = json.loads(json.dumps(await first.save_state()))
    call.cancel()
    await asyncio.wait([call])
    await second.load_state(state)
    assert "'unsettled'" in (await second.call_tool("pay", {"amount": 5})).to_text()
    assert paid == [5]
    assert [one.action for one in second.unsettled] == ["pay"]


def fail_for_good() -> str:
    """Fails."""
    return '{"ok": false, "failure": "deterministic"}'


async def test_a_state_of_something_else_is_refused() -> None:
    bench = ConstrainedWorkbench([triple])
    with pytest.raises(StateError, match="no saved state of a ConstrainedWorkbench"):
        await bench.load_state({"type": "StaticWorkbenchState", "tools": {}})
    with pytest.raises(StateError, match="of 2 workbench"):
        await bench.load_state(await ConstrainedWorkbench([triple, Echoing()]).save_state())


async def test_a_component_makes_an_equal_workbench() -> None:
    bench = ConstrainedWorkbench(
        [triple, StaticWorkbench([FunctionTool(fail_for_good, "Fails.")])],
        constraints=[AtMost(3, names=("number",)), no_deletion],
        context=Tank(size=3),
        approval=ApprovalPolicy(when=[is_large], wait_seconds=9),
        approve=approves,
        logs="some/logs",
        name="till",
        timeout=7,
        output_characters=100,
        parallel=True,
    )
    dumped = bench.dump_component()
    assert dumped.provider == "coag.compat.ConstrainedWorkbench"
    again = Workbench.load_component(ComponentModel.model_validate_json(dumped.model_dump_json()))
    assert isinstance(again, ConstrainedWorkbench)
    assert again.dump_component() == dumped
    assert again.context.perceptual_state_schema is Tank().perceptual_state_schema
    assert [tool["name"] for tool in await again.list_tools()] == ["triple", "fail_for_good"]


async def test_a_run_folder_shows_calls_verdicts_and_returns(tmp_path: Path) -> None:
    bench = ConstrainedWorkbench(
        [Shop().buy], constraints=[within_purse], context=PurseContext(), logs=tmp_path
    )
    batch = calls(("buy", {"price": 6}), ("buy", {"price": 5}))
    await stock(bench, batch).run(task="Buy.")
    await bench.stop()
    info = read_run(bench.folder)
    assert (info.kind, info.agent) == ("plain", "workbench")
    assert info.ended_at is not None
    tags = [record.record for record in bench.records]
    assert tags == ["snapshot", "note", "intent", "receipt", "percept", "note", "percept"]
    result = CliRunner().invoke(app, ["log", str(bench.folder)])
    assert result.exit_code == 0
    assert 'constraint: buy({"price": 5}) is forbidden by within_purse' in result.output
    assert '"left": 4' in result.output


async def test_a_trace_that_cannot_be_written_lets_nothing_run(tmp_path: Path) -> None:
    shop = Shop()
    logs = tmp_path / "logs"
    logs.write_text("no folder")
    bench = ConstrainedWorkbench([shop.buy], logs=logs)
    ended = await stock(bench, calls(("buy", {"price": 1}))).run(task="Buy.")
    assert "not run. TraceError" in results(ended)[0].content
    assert "Nothing was done." in results(ended)[0].content
    assert shop.bought == []


@pytest.mark.broken_trace("the run is ended while its action runs")
async def test_a_call_whose_end_cannot_be_written_down_leaves_its_outcome_unknown(
    tmp_path: Path,
) -> None:
    async def end_the_run() -> str:
        """Ends the trace that its own receipt is to be written in."""
        await bench.stop()
        return "ended"

    bench = ConstrainedWorkbench([end_the_run], logs=tmp_path)
    result = await bench.call_tool("end_the_run", {})
    assert result.is_error
    assert result.may_have_happened
    assert "end_the_run was run, and then: TraceError" in result.to_text()
    for later in (bench, ConstrainedWorkbench([end_the_run], logs=tmp_path)):
        again = await later.call_tool("end_the_run", {})
        assert "The rule 'unsettled' forbids it" in again.to_text()
        await later.stop()


_KILLED = """
    import asyncio, os, sys
    from coag.compat import ConstrainedWorkbench

    def order(pieces: int) -> str:
        '''Orders.'''
        os._exit(9)

    bench = ConstrainedWorkbench([order], logs=sys.argv[1])
    asyncio.run(bench.call_tool("order", {"pieces": 5}))
"""


async def test_a_call_whose_run_is_stopped_meanwhile_is_of_unknown_outcome_in_the_next(
    tmp_path: Path,
) -> None:
    began, may_end = asyncio.Event(), asyncio.Event()

    async def order(pieces: int) -> str:
        """Orders pieces."""
        began.set()
        await may_end.wait()
        return "ordered"

    bench = ConstrainedWorkbench([order, triple], logs=tmp_path)
    call = asyncio.create_task(bench.call_tool("order", {"pieces": 1}))
    await began.wait()
    await bench.stop()
    await bench.call_tool("triple", {"number": 2})
    may_end.set()
    assert "was ended while the call ran" in (await call).to_text()
    assert [one.action for one in bench.unsettled] == ["order"]
    await bench.stop()
    assert [verify(run) for run in list_runs(tmp_path)] == [[], []]


async def test_a_call_that_a_crash_broke_off_is_not_repeated_before_it_is_settled(
    tmp_path: Path,
) -> None:
    script = [sys.executable, "-c", textwrap.dedent(_KILLED), str(tmp_path)]
    killed = await asyncio.to_thread(subprocess.run, script, timeout=60, check=False)
    assert killed.returncode == 9
    ordered: list[int] = []

    def order(pieces: int) -> str:
        """Orders."""
        ordered.append(pieces)
        return "ordered"

    bench = ConstrainedWorkbench([order], logs=tmp_path)
    assert not (await bench.call_tool("order", {"pieces": 1})).is_error
    refused = await bench.call_tool("order", {"pieces": 5})
    assert "The rule 'unsettled' forbids it: exactly this began" in refused.to_text()
    assert (await bench.call_tool("order", {"pieces": 5})).is_error
    assert ordered == [1]
    (open_call,) = bench.unsettled
    await bench.settle(open_call.intent_id, happened=False)
    assert not (await bench.call_tool("order", {"pieces": 5})).is_error
    assert [intent.arguments for intent in bench.unfinished] == [{"pieces": 5}]
    (lost,) = [p for p in only(bench.records, Percept) if p.kind is PerceptKind.UNKNOWN_OUTCOME]
    assert lost.arguments == {"pieces": 5}
    await bench.stop()
    await bench.start()
    assert bench.unfinished == ()
    await bench.stop()


async def test_a_kill_right_behind_a_receipt_of_unknown_outcome_hides_nothing(
    tmp_path: Path,
) -> None:
    async def order(pieces: int) -> str:
        """Orders."""
        raise TimeoutError

    first = ConstrainedWorkbench([order], logs=tmp_path / "before")
    assert (await first.call_tool("order", {"pieces": 5})).may_have_happened
    shutil.copytree(tmp_path / "before", tmp_path / "after")  # as a kill would leave it
    await first.stop()
    (trace,) = (tmp_path / "after").glob("*/trace.jsonl")
    lines = trace.read_text(encoding="utf-8").splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if '"record":"receipt"' in line)
    trace.write_text("".join(lines[: end + 1]), encoding="utf-8")
    later = ConstrainedWorkbench([order], logs=tmp_path / "after")
    refused = await later.call_tool("order", {"pieces": 5})
    assert "The rule 'unsettled' forbids it" in refused.to_text()
    await later.stop()


async def test_a_run_that_another_process_continues_is_left_alone(tmp_path: Path) -> None:
    inside, leave = asyncio.Event(), asyncio.Event()

    async def order() -> str:
        """Orders."""
        inside.set()
        await leave.wait()
        return "ordered"

    one, two = (ConstrainedWorkbench([order], logs=tmp_path) for _ in range(2))
    ordering = asyncio.create_task(one.call_tool("order", {}))
    await inside.wait()
    leave.set()
    assert not (await two.call_tool("order", {})).is_error
    assert two.unfinished == ()
    (said,) = notes(two, "run")
    assert said.text.startswith(f"{one.folder.name}: another of this name is at work")
    assert not (await ordering).is_error
    assert read_run(one.folder).ended_at is None
    await one.stop()
    await two.stop()


# ---- cancellation ----


def waiting() -> tuple[Callable[[], Any], asyncio.Event]:
    """A tool that never ends, and what is set once it runs."""
    running = asyncio.Event()

    async def wait() -> str:
        """Waits."""
        running.set()
        await asyncio.Event().wait()
        return ""

    return wait, running


async def test_a_cancelled_call_ends_with_a_receipt_and_the_agent_with_it() -> None:
    token = CancellationToken()
    wait, running = waiting()
    bench = ConstrainedWorkbench([wait], constraints=[no_deletion])
    agent = stock(bench, calls(("wait", {}), ("wait", {})))
    task = asyncio.create_task(agent.run(task="Wait.", cancellation_token=token))
    await running.wait()
    token.cancel()
    first, second = results(await asyncio.wait_for(task, 20))
    assert "outcome is unknown" in first.content
    assert "was cancelled before it ran. Nothing was done." in second.content
    third = await bench.call_tool("wait", {}, token)
    assert "was cancelled before it began. Nothing was done." in third.to_text()
    assert not third.may_have_happened
    assert [r.status for r in only(bench.records, Receipt)] == [ReceiptStatus.CANCELLED]


async def test_a_task_that_is_cancelled_and_a_stream_that_is_left_end_with_a_receipt() -> None:
    wait, running = waiting()
    bench = ConstrainedWorkbench([wait])
    calling = asyncio.create_task(bench.call_tool("wait", {}))
    await running.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert [r.status for r in only(bench.records, Receipt)] == [ReceiptStatus.CANCELLED]

    bench = ConstrainedWorkbench([Counting()])
    stream = bench.call_tool_stream("count", {"to": 10**9})
    await anext(stream)
    await stream.aclose()
    assert [r.status for r in only(bench.records, Receipt)] == [ReceiptStatus.CANCELLED]


@pytest.mark.parametrize("streams", [False, True])
async def test_a_call_that_is_cancelled_twice_is_known_before_the_next_one_begins(
    streams: bool,
) -> None:
    begun, running = list[str](), asyncio.Event()

    async def order() -> str:
        """Orders, and takes a while to end."""
        begun.append("order")
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(9):
                await asyncio.sleep(0)
        return ""

    bench = ConstrainedWorkbench([order])

    async def stream() -> None:
        async for _ in bench.call_tool_stream("order", {}):
            pass

    calling: asyncio.Task[Any] = asyncio.create_task(
        stream() if streams else bench.call_tool("order", {})
    )
    await running.wait()
    for _ in range(2):
        calling.cancel()
        await asyncio.sleep(0)
    await asyncio.wait({calling})
    assert calling.cancelled()
    refused = await bench.call_tool("order", {})
    assert "The rule 'unsettled' forbids it" in refused.to_text()
    assert begun == ["order"]


# ---- what is refused ----


async def test_no_tool_passes_for_the_answer_that_patterns_and_approvers_leave_out() -> None:
    sent: list[str] = []

    def respond(text: str) -> str:
        """Has the name of the answer of our own agents."""
        sent.append(text)
        return "sent"

    with pytest.raises(ConfigurationError, match="'respond'"):
        ConstrainedWorkbench([respond], constraints=[never])
    inner = StaticWorkbench([FunctionTool(respond, "Sends.")])
    bench = ConstrainedWorkbench(inner, approve=ScriptedApprover([False]))
    assert await bench.list_tools() == []
    result = await bench.call_tool("respond", {"text": "hello"})
    assert result.is_error
    assert "there is no action 'respond'" in result.to_text()
    assert not sent


async def test_a_refusal_names_the_rule_its_reason_and_that_nothing_was_done() -> None:
    shop = Shop()
    bench = ConstrainedWorkbench([shop.buy], constraints=[never])
    for name, arguments, text in (
        ("buy", {"price": 3}, "The rule 'never' forbids it: not today. Nothing was done."),
        ("buy", {"price": object()}, "no JSON"),
        ("sell", {}, "there is no action 'sell'; there are: buy"),
    ):
        result = await bench.call_tool(name, arguments)
        assert (result.is_error, result.may_have_happened) == (True, False)
        assert result.to_text().startswith(f"{name} was not run. ")
        assert text in result.to_text()
    assert shop.bought == []


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (
            lambda: ConstrainedWorkbench([triple], approval=ApprovalPolicy.everything()),
            "needs somebody to ask",
        ),
        (
            lambda: ConstrainedWorkbench(
                [triple], constraints=[lambda c, s, p: Verdict.allow()]
            ).dump_component(),
            "constraints=",
        ),
        (lambda: ConstrainedWorkbench([triple]).folder, "give `logs=DIR`"),
        (lambda: ConstrainedWorkbench([triple], logs="new").folder, "made with the first call"),
    ],
)
def test_what_a_workbench_cannot_do_is_refused_by_name(
    make: Callable[[], object], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        make()

"""The guard by itself: what is selected is judged, run and recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from kits.importable import AtMost, triple
from kits.minds import HandClock, TestMind, make_mind

from coag.context import CoagContext
from coag.cycle import (
    ActionRun,
    ApprovalPolicy,
    ApprovalRequest,
    Approvals,
    BatchResult,
    GuardDeps,
    GuardedActions,
    run_selected,
)
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Candidate,
    Evaluation,
    ExecutionStatus,
    PerceptKind,
    Phase,
    ReceiptStatus,
    RetrievalOutcome,
)
from coag.tracing import MemoryTrace


def wish(number: int) -> Candidate:
    return Candidate(id=f"c{number}", action="triple", raw_arguments=f'{{"number": {number}}}')


async def run(mind: TestMind, *candidates: Candidate, evaluations: list[Evaluation]) -> BatchResult:
    mind.deps.constraints.pin()
    mind.context.commit(
        RetrievalOutcome(cycle=1, at=mind.deps.clock.now(), query="", constraints=("AtMost",))
    )
    mind.deps.actions.enter(Phase.EXECUTION)
    return await run_selected(
        candidates, mind.context, mind.deps, judged=lambda _, judged: evaluations.append(judged)
    )


async def test_each_selected_action_is_judged_and_what_passes_is_run() -> None:
    mind = make_mind(tools=[triple], constraints=[AtMost(3, names=("number",))])
    evaluations: list[Evaluation] = []
    ended = await run(mind, wish(4), wish(2), evaluations=evaluations)
    refused, done = ended.ran
    assert refused.executed.status is ExecutionStatus.REFUSED
    assert refused.refused_by is not None
    assert refused.refused_by.constraint == "AtMost"
    assert refused.returned is None
    assert done.executed.status is ExecutionStatus.DONE
    assert done.refused_by is None
    assert done.returned is not None
    assert done.returned.content == "6"
    assert [evaluation.survived for evaluation in evaluations] == [False, True]
    assert [r.record for r in mind.trace.records] == ["intent", "receipt"]


# ---- approvals that expire on the way ----


class Office:
    """Actions whose `listed` and `run` record what happens meanwhile."""

    def __init__(
        self,
        *,
        internal: Sequence[str] = (),
        listed: Callable[[], None] = lambda: None,
        run: Callable[[str], None] = lambda action: None,
    ) -> None:
        self.internal = internal
        self.listed = listed
        self.run = run
        self.ran: list[str] = []

    async def specs(self) -> Mapping[str, ActionSpec]:
        self.listed()
        return {
            name: ActionSpec(name=name, description="", internal=name in self.internal)
            for name in ("pay", "search", "sign")
        }

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

    async def execute(self, call: ActionCall) -> ActionResult:
        self.run(call.action)
        self.ran.append(call.action)
        return ActionResult(content="done")


def guarded(office: Office, clock: HandClock, approve: Any) -> tuple[CoagContext[Any], GuardDeps]:
    context = CoagContext[Any](clock=clock)
    policy = ApprovalPolicy(actions=["pay", "sign"], approval_seconds=10)
    approvals = Approvals(approve, policy, clock=clock)
    deps = GuardDeps(
        actions=office, trace=MemoryTrace(), clock=clock, ids=context.ids, approvals=approvals
    )
    return context, deps


def batch(*actions: str) -> list[Candidate]:
    return [Candidate(id=action, action=action, raw_arguments="{}") for action in actions]


async def test_an_approval_that_expires_while_tools_are_listed_lets_nothing_run() -> None:
    clock, asked = HandClock(), list[str]()

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request.action)
        return True

    office = Office(listed=lambda: clock.wait(60) if asked else None)
    context, deps = guarded(office, clock, approve)
    ended = await run_selected(batch("pay"), context, deps)
    assert ended.ran[0].refused_by is not None
    assert "expired before it could run" in ended.ran[0].refused_by.reason
    assert office.ran == []
    assert isinstance(deps.trace, MemoryTrace)
    assert not [record for record in deps.trace.records if record.record == "intent"]


@pytest.mark.parametrize("agreed", [True, False])
async def test_what_runs_after_others_is_asked_about_when_they_have_run(agreed: bool) -> None:
    clock, asked = HandClock(), list[str]()

    def approve(request: ApprovalRequest) -> bool:
        assert office.ran == ["search"]
        asked.append(request.action)
        return agreed

    office = Office(internal=["sign"], run=lambda action: clock.wait(60))
    context, deps = guarded(office, clock, approve)
    ended = await run_selected(batch("search", "sign"), context, deps)
    assert asked == ["sign"]
    assert office.ran == (["search", "sign"] if agreed else ["search"])
    statuses = [done.executed.status for done in ended.ran]
    second = ExecutionStatus.DONE if agreed else ExecutionStatus.REFUSED
    assert statuses == [ExecutionStatus.DONE, second]


async def test_what_ran_is_reported_where_the_wait_for_another_is_cancelled() -> None:
    clock, asked = HandClock(), list[str]()

    async def approve(request: ApprovalRequest) -> bool:
        asked.append(request.action)
        task.cancel()
        await asyncio.Event().wait()
        return True

    office = Office(internal=["sign"], run=lambda action: clock.wait(60))
    context, deps = guarded(office, clock, approve)
    task = asyncio.create_task(run_selected(batch("search", "sign"), context, deps))
    ended = await task
    assert asked == ["sign"]
    assert office.ran == ["search"]
    assert isinstance(ended.broken, asyncio.CancelledError)
    statuses = [done.executed.status for done in ended.ran]
    assert statuses == [ExecutionStatus.DONE, ExecutionStatus.REFUSED]


async def test_an_action_that_needs_approval_while_others_run_is_asked_about() -> None:
    clock, asked = HandClock(), list[str]()

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request.action)
        return False

    office = Office(internal=["sign"])
    context, deps = guarded(office, clock, approve)
    assert deps.approvals is not None
    deps.approvals.policy = ApprovalPolicy(actions=["pay"])

    def tighten(action: str) -> None:
        assert deps.approvals is not None
        deps.approvals.policy = ApprovalPolicy(actions=["sign"])

    office.run = tighten
    await run_selected(batch("search", "sign"), context, deps)
    assert (asked, office.ran) == (["sign"], ["search"])


# ---- One action between its intent and its receipt, whatever it does ----


SPEC = ActionSpec(name="act", description="", parameters={"type": "object"})
CANDIDATE = Candidate(id="c1", action="act", raw_arguments='{"a": 1}')


class World:
    """One action that returns or raises what it was made with; the world's, or the agent's own."""

    def __init__(self, brings: ActionResult | BaseException) -> None:
        self.brings = brings

    async def specs(self) -> Sequence[ActionSpec]:
        return (SPEC,)

    def action_specs(self) -> Sequence[ActionSpec]:
        return (SPEC.model_copy(update={"internal": True, "repeatable": True}),)

    async def execute(self, call: ActionCall) -> ActionResult:
        if isinstance(self.brings, BaseException):
            raise self.brings
        return self.brings

    run_action = execute


async def ran(
    brings: ActionResult | BaseException, *, internal: bool = False
) -> tuple[ActionRun, TestMind]:
    mind, world = make_mind(), World(brings)
    actions = GuardedActions(None, [world]) if internal else GuardedActions(world)
    actions.enter(Phase.EXECUTION)
    mind.deps = replace(mind.deps, actions=actions, run=lambda: "run-1")
    ended = await run_selected([CANDIDATE], mind.context, mind.deps)
    return ended.ran[0], mind


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (asyncio.CancelledError(), ReceiptStatus.CANCELLED),
        (KeyboardInterrupt(), ReceiptStatus.UNKNOWN),
        (SystemExit(), ReceiptStatus.UNKNOWN),
    ],
)
async def test_what_breaks_an_action_off_is_kept_and_leaves_a_receipt(
    error: BaseException, status: ReceiptStatus
) -> None:
    done, mind = await ran(error)
    assert done.broken is error
    assert done.queued[0].kind is PerceptKind.UNKNOWN_OUTCOME
    (receipt,) = mind.records("receipt")
    assert receipt.record == "receipt"
    assert receipt.status is status


async def test_an_internal_action_that_is_interrupted_says_so() -> None:
    done, mind = await ran(asyncio.CancelledError(), internal=True)
    assert isinstance(done.broken, asyncio.CancelledError)
    assert done.executed.status is ExecutionStatus.FAILED
    assert (done.queued, mind.records("receipt")) == ((), [])

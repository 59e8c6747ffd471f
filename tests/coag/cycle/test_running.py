"""One action between its intent and its receipt, whatever it does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from kits.minds import TestMind, make_mind

from coag.cycle import GuardedActions
from coag.cycle.execution import ActionRun, begin, finish
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Candidate,
    ExecutionStatus,
    PerceptKind,
    Phase,
    ReceiptStatus,
)

SPEC = ActionSpec(name="act", description="", parameters={})
OWN = SPEC.model_copy(update={"internal": True, "repeatable": True})
OWN_CALL = ActionCall(id="internal-000001", action="act", arguments={})
CANDIDATE = Candidate(id="c1", action="act", raw_arguments="{}")


class World:
    """Actions that bring or raise what they are told to."""

    def __init__(self, brings: ActionResult | BaseException) -> None:
        self.brings = brings

    async def specs(self) -> Sequence[ActionSpec]:
        return (SPEC,)

    async def execute(self, call: ActionCall) -> ActionResult:
        if isinstance(self.brings, BaseException):
            raise self.brings
        return self.brings


def mind_with(brings: ActionResult | BaseException) -> TestMind:
    mind = make_mind()
    actions = GuardedActions(World(brings))
    actions.enter(Phase.EXECUTION)
    mind.deps = replace(mind.deps, actions=actions, run=lambda: "run-1")
    return mind


async def ran(brings: ActionResult | BaseException) -> tuple[ActionRun, TestMind]:
    mind = mind_with(brings)
    call = begin(CANDIDATE, {"a": 1}, mind.context, mind.deps)
    return await finish(CANDIDATE, call, SPEC, mind.context, mind.deps), mind


@pytest.mark.parametrize(
    ("result", "status", "kind"),
    [
        (ActionResult(content="x", is_error=True), ReceiptStatus.FAILED, PerceptKind.TOOL_RETURN),
        (
            ActionResult(content="x", is_error=True, outcome_unknown=True),
            ReceiptStatus.UNKNOWN,
            PerceptKind.UNKNOWN_OUTCOME,
        ),
    ],
)
async def test_a_failure_is_told_as_what_it_is(
    result: ActionResult, status: ReceiptStatus, kind: PerceptKind
) -> None:
    done, mind = await ran(result)
    (receipt,) = mind.records("receipt")
    assert receipt.record == "receipt"
    assert receipt.status is status
    assert done.queued[0].kind is kind
    assert done.executed.status is ExecutionStatus.FAILED
    assert done.broken is None


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


async def test_a_long_result_is_cut_in_what_is_remembered() -> None:
    done, _ = await ran(ActionResult(content="x" * 900_000))
    assert len(done.executed.result) <= 200_000


async def test_an_internal_action_that_is_broken_off_says_so() -> None:
    mind = mind_with(asyncio.CancelledError())
    done: Any = await finish(CANDIDATE, OWN_CALL, OWN, mind.context, mind.deps)
    assert isinstance(done.broken, asyncio.CancelledError)
    assert done.executed.status is ExecutionStatus.FAILED

"""The guard by itself: what is selected is judged, run and recorded."""

from __future__ import annotations

from kits.importable import AtMost, triple
from kits.minds import TestMind, make_mind

from coag.cycle import Ended, run_selected
from coag.schema import Candidate, Evaluation, ExecutionStatus, Phase, RetrievalOutcome


def wish(number: int) -> Candidate:
    return Candidate(id=f"c{number}", action="triple", raw_arguments=f'{{"number": {number}}}')


async def run(mind: TestMind, *candidates: Candidate, told: list[Evaluation]) -> Ended:
    mind.deps.constraints.pin()
    mind.context.commit(
        RetrievalOutcome(cycle=1, at=mind.deps.clock.now(), query="", constraints=("AtMost",))
    )
    mind.deps.actions.enter(Phase.EXECUTION)
    return await run_selected(
        candidates, mind.context, mind.deps, judged=lambda candidate, judged: told.append(judged)
    )


async def test_each_selected_action_is_judged_and_what_passes_is_run() -> None:
    mind = make_mind(tools=[triple], constraints=[AtMost(3, names=("number",))])
    told: list[Evaluation] = []
    ended = await run(mind, wish(4), wish(2), told=told)
    refused, done = ended.ran
    assert refused.executed.status is ExecutionStatus.REFUSED
    assert refused.refused_by is not None
    assert refused.refused_by.constraint == "AtMost"
    assert refused.returned is None
    assert done.executed.status is ExecutionStatus.DONE
    assert done.refused_by is None
    assert done.returned is not None
    assert done.returned.content == "6"
    assert [evaluation.survived for evaluation in told] == [False, True]
    assert [r.record for r in mind.trace.records] == ["intent", "receipt"]


async def test_what_the_actions_brought_is_left_to_be_perceived() -> None:
    mind = make_mind(tools=[triple])
    before = mind.context.state
    mind.deps.actions.enter(Phase.EXECUTION)
    ended = await run_selected([wish(2)], mind.context, mind.deps)
    assert mind.context.state == before
    assert [percept.content for done in ended.ran for percept in done.queued] == ["6"]
